// Command upgrade replaces a Spool that serves live streams by a new one, again and again, and counts what
// its readers and callers noticed: nothing. `make upgrade-demo` runs it.
//
//	old ──SIGUSR2──▶ starts new ──"ready"──▶ closes its listener, sends readers there, drains its runs, ends
//	                        └── does not start ──▶ nothing has changed
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"
)

const program = "github.com/spool-dev/spool/cmd/spool"

func main() {
	o := options{log: io.Discard}
	flag.IntVar(&o.streams, "streams", 100, "live streams that go through all upgrades")
	flag.IntVar(&o.upgrades, "upgrades", 5, "upgrades in a row, at least 2")
	flag.DurationVar(&o.pause, "pause", time.Second, "between two of them")
	verbose := flag.Bool("v", false, "print what the processes say")
	flag.Parse()
	if *verbose {
		o.log = os.Stderr
	}
	if err := demo(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "spool-upgrade")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // in the worst case it stays in the folder for such things
	if o.binary, err = build(ctx, dir); err != nil {
		return err
	}
	o.dir = filepath.Join(dir, "work")
	r, err := run(ctx, o)
	fmt.Print(r)
	if err != nil {
		return err
	}
	return r.verdict()
}

// build makes the program as it is shipped.
func build(ctx context.Context, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "built")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// options is one staging.
type options struct {
	streams, upgrades int
	pause             time.Duration
	binary            string // what is upgraded, and to
	dir               string // for everything else; made where it is missing
	log               io.Writer
}

// report is what was seen.
type report struct {
	streams, upgrades    int
	refused              int // upgrades to what does not start
	moved                int // times that a reader came back to a new process
	lost, duplicated     int // events, of all readers
	interrupted          int // of the streams
	killed, sealed       int // streams of the process that was killed, and those that ended for it
	requests, failed     int // of callers that call all the time, and of readers who come back
	bought, wantedBought int // calls that the provider got, and should
	longest              time.Duration
}

// verdict is an error where anybody noticed an upgrade.
func (r report) verdict() error {
	if r.lost+r.duplicated+r.interrupted+r.failed > 0 || r.killed != r.sealed || r.bought != r.wantedBought {
		return fmt.Errorf("an upgrade was noticed")
	}
	return nil
}

// String is the table.
func (r report) String() string {
	var text tableText
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		what  string
		count any
	}{
		{"live streams", r.streams},
		{"upgrades under them", r.upgrades},
		{"upgrades to what does not start", r.refused},
		{"readers sent to a new process", r.moved},
		{"events lost", r.lost},
		{"events duplicated", r.duplicated},
		{"streams interrupted", r.interrupted},
		{"streams of a draining process that was killed", r.killed},
		{"of them sealed, and no others", r.sealed},
		{"requests meanwhile", r.requests},
		{"of them failed", r.failed},
		{"longest of them", r.longest.Round(time.Millisecond)},
		{"calls bought", fmt.Sprintf("%d of %d", r.bought, r.wantedBought)},
	} {
		fmt.Fprintf(table, "%s\t%v\n", row.what, row.count)
	}
	_ = table.Flush() // into memory
	return string(text)
}

type tableText []byte

// Write implements io.Writer.
func (t *tableText) Write(b []byte) (int, error) { *t = append(*t, b...); return len(b), nil }
