// Kubernetes' own control plane and kubectl in one binary.
//
//	kubernetes etcd FOLDER CLIENT-URL PEER-URL
//	kubernetes apiserver FLAGS...
//	kubernetes controller-manager FLAGS...
//	kubernetes kubectl ARGS...
//
// The first three end when their input ends, so that nothing outlives the tests that started them; etcd
// removes its folder then, with all that the tests keep in it.
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("say which program"))
	}
	name := os.Args[1]
	// Each program reads its arguments as if it were alone.
	os.Args = append([]string{name}, os.Args[2:]...)
	var command *cobra.Command
	tidy := func() {}
	switch name {
	case "kubectl":
		os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
	case "apiserver":
		command = apiserver.NewAPIServerCommand()
	case "controller-manager":
		command = manager.NewControllerManagerCommand()
	case "etcd":
		command = &cobra.Command{Args: cobra.ExactArgs(3), RunE: etcd}
		tidy = func() { os.RemoveAll(os.Args[1]) }
	default:
		fail(fmt.Errorf("unknown program %q", name))
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		tidy()
		os.Exit(0)
	}()
	os.Exit(cli.Run(command))
}

func etcd(_ *cobra.Command, arguments []string) error {
	config := embed.NewConfig()
	config.Dir = filepath.Join(arguments[0], "etcd")
	client, err := url.Parse(arguments[1])
	if err != nil {
		return err
	}
	peer, err := url.Parse(arguments[2])
	if err != nil {
		return err
	}
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = []url.URL{*client}
	config.ListenPeerUrls = []url.URL{*peer}
	config.AdvertisePeerUrls = []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// Its data need not survive the machine, only a restarted API server.
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
