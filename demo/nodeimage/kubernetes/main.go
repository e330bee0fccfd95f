// Command kubernetes is every Kubernetes program of a node image, and etcd: one
// static binary, which finds out by the name that it is called by what it is. A node
// then has their common code once, on disk and in the page cache.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins of kubectl
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // format of logs
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric of the version
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs are what this binary can be called as.
func programs() map[string]func() {
	return map[string]func(){
		"etcd":                    func() { etcdmain.Main(os.Args) },
		"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
		"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
		"kube-proxy":              func() { run(kubeproxy.NewProxyCommand()) },
		"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
		"kubeadm":                 func() { kubeadmerrors.HandleError(kubeadm.Run()) },
		"kubectl":                 runKubectl,
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	program, ok := programs()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: no such program in this binary; link one of %q to it and call that\n",
			name, slices.Sorted(maps.Keys(programs())))
		os.Exit(2)
	}
	program()
}

func run(command *cobra.Command) { os.Exit(cli.Run(command)) }

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // it exits
	}
}
