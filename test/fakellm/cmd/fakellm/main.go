// Command fakellm is the scripted provider as a program, for demonstrations, soak and bench.
//
//	fakellm --listen 127.0.0.1:9001 --every 60ms
//	fakellm --script scripts.json      {"primary": [[{"op": "json", …}], …], …}
//	fakellm --captures DIR             recordings at /{name}[,chunk=N][,ms=N][,cut=N][,end=N]/…
//
// It prints the address that it listens on as one line. Generation calls without a script get the
// text, a word to an event, in the dialect that their path asks for; /load/… is shaped by its query;
// GET /__requests tells what was asked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fakellm:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("fakellm", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:9001", "`address` to listen on")
	script := flags.String("script", "", "JSON `file` with the scripts of routes")
	captures := flags.String("captures", "", "`folder` of recordings")
	text := flags.String("text", fakellm.DefaultText, "what generation calls are answered with")
	every := flags.Duration("every", 60*time.Millisecond, "the pause between two events of that answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	config := fakellm.Config{Text: *text, Every: *every}
	if *captures != "" {
		var err error
		if config.Recordings, err = fakellm.ReadRecordings(*captures); err != nil {
			return err
		}
	}
	scripts, err := readScripts(*script)
	if err != nil {
		return err
	}

	server, err := fakellm.New(*listen, config)
	if err != nil {
		return err
	}
	defer server.Close()
	for route, answers := range scripts {
		server.Script(route, answers...)
	}
	fmt.Fprintln(stdout, server.Addr())
	<-ctx.Done()
	return nil
}

func readScripts(file string) (map[string][][]fakellm.Op, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	scripts, err := fakellm.ParseRoutes(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return scripts, nil
}
