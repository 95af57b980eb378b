// A vcsim (govmomi's simulator) with an inventory of the size that a test asks for.
//
//	vcsim -clusters 5 -hosts 100
//
// It prints the address, the user and password, and the certificate as lines "key value", then obeys
// lines of its input until that ends:
//
//	end sessions	ends every session, and prints "ended 2"
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
)

func main() {
	clusters := flag.Int("clusters", 1, "clusters")
	hosts := flag.Int("hosts", 3, "hosts in each cluster")
	alone := flag.Int("alone", 0, "hosts outside of clusters")
	vms := flag.Int("vms", 0, "virtual machines in each cluster and on each host outside of them")
	delay := flag.Int("delay", 0, "milliseconds that entering maintenance mode takes")
	flag.Parse()

	model := simulator.VPX()
	// As its own command does for -api-version: it says 6.5 otherwise, which nobody speaks any more.
	model.ServiceContent.About.ApiVersion = "8.0.3.0"
	model.Host = *alone
	model.Cluster = *clusters
	model.ClusterHost = *hosts
	model.Machine = *vms
	model.DelayConfig.MethodDelay = map[string]int{"EnterMaintenanceMode_Task": *delay}
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	defer model.Remove()

	model.Service.TLS = &tls.Config{}
	server := model.Service.NewServer()
	defer server.Close()

	password, _ := server.URL.User.Password()
	sum := sha256.Sum256(server.Certificate().Raw)
	fmt.Println("address", server.URL.Host)
	fmt.Println("user", server.URL.User.Username())
	fmt.Println("password", password)
	fmt.Println("sha256", hex.EncodeToString(sum[:]))

	// The test closes our input when it ends, however it ends.
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() != "end sessions" {
			log.Fatalf("unknown command %q", lines.Text())
		}
		ended, err := endSessions(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("ended", ended)
	}
}

// endSessions does what an administrator does: logs in and ends the sessions of all others.
func endSessions(at *url.URL) (int, error) {
	ctx := context.Background()
	client, err := govmomi.NewClient(ctx, at, true)
	if err != nil {
		return 0, err
	}
	defer client.Logout(ctx)
	own, err := client.SessionManager.UserSession(ctx)
	if err != nil {
		return 0, err
	}
	var manager mo.SessionManager
	collector := property.DefaultCollector(client.Client)
	if err := collector.RetrieveOne(ctx, client.SessionManager.Reference(), []string{"sessionList"}, &manager); err != nil {
		return 0, err
	}
	var others []string
	for _, session := range manager.SessionList {
		if session.Key != own.Key {
			others = append(others, session.Key)
		}
	}
	return len(others), client.SessionManager.TerminateSession(ctx, others)
}
