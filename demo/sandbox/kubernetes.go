package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserverapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanagerapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	schedulerapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwokcmd "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func etcd(args []string) int {
	etcdmain.Main(args)
	return 0
}

func apiServer([]string) int         { return run(apiserverapp.NewAPIServerCommand()) }
func controllerManager([]string) int { return run(controllermanagerapp.NewControllerManagerCommand()) }
func scheduler([]string) int         { return run(schedulerapp.NewSchedulerCommand()) }

func run(command *cobra.Command) int { return cli.Run(command) }

// kwok stands in for the kubelet: pods become Running, with addresses.
func kwok([]string) int {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("kwok: reading the configuration", "err", err)
		return 1
	}
	command := kwokcmd.NewCommand(ctx)
	// Its --version flag would be registered twice: the API server linked into the same binary registers it, too.
	command.Version = ""
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("kwok: stopped", "err", err)
		return 1
	}
	return 0
}

// kwokStages prints the stages of nodes and pods as kwok configuration documents.
func kwokStages([]string) int {
	for _, doc := range []string{
		nodefast.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	} {
		fmt.Println("---")
		fmt.Println(doc)
	}
	return 0
}
