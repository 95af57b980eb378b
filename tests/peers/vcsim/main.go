// A vcsim (govmomi's simulator) with an inventory of the size that a test asks for.
//
//	vcsim -clusters 5 -hosts 100
//
// It prints the address, the user and password, and the certificate as lines "key value", and runs
// until its input ends.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/vmware/govmomi/simulator"
)

func main() {
	clusters := flag.Int("clusters", 1, "clusters")
	hosts := flag.Int("hosts", 3, "hosts in each cluster")
	delay := flag.Int("delay", 0, "milliseconds that each task takes")
	flag.Parse()

	model := simulator.VPX()
	model.Host = 0
	model.Cluster = *clusters
	model.ClusterHost = *hosts
	model.Machine = 0
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
	_, _ = io.Copy(io.Discard, os.Stdin)
}
