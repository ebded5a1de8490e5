package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// lameDuck is how long a server that is asked to end lets its clients go elsewhere: some seconds are enough for
// a few.
const lameDuck = time.Second

// natsServer is the program run as one NATS server of three, until it is asked to end.
func natsServer(args []string) error {
	flags := flag.NewFlagSet("nats", flag.ContinueOnError)
	o := &server.Options{Host: loopback, HTTPHost: loopback, JetStream: true, SyncAlways: true, NoSigs: true}
	o.Cluster = server.ClusterOpts{Name: "spool", Host: loopback, NoAdvertise: true} // clients go where they are sent alone
	o.LameDuckGracePeriod, o.LameDuckDuration = lameDuck, 2*lameDuck
	flags.StringVar(&o.ServerName, "name", "", "its `name`")
	flags.StringVar(&o.StoreDir, "dir", "", "`folder` of its files")
	flags.StringVar(&o.LogFile, "log", "", "`file` for what it says")
	flags.IntVar(&o.Port, "port", 0, "for clients")
	flags.IntVar(&o.HTTPPort, "monitor", 0, "for those who want to know how it is set")
	flags.IntVar(&o.Cluster.Port, "route", 0, "for the other servers")
	routes := flags.String("routes", "", "`addresses` of all of them, with commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for address := range strings.SplitSeq(*routes, ",") {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: address})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s.Start()
	if !s.ReadyForConnections(startLimit) {
		return errors.New("server does not get ready")
	}
	fmt.Println("ready") // whoever has started it waits for the line
	<-ctx.Done()
	s.LameDuckShutdown()
	s.WaitForShutdown()
	return nil
}
