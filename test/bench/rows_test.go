package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

func TestWake_EveryCursorReadsToTheEnd(t *testing.T) {
	o, err := job{Kind: wake, Streams: 5, Rate: 1000, Measure: 50 * time.Millisecond, Data: t.TempDir()}.do(t.Context())
	if err != nil || o.Checks != (tally{Events: 250}) {
		t.Errorf("got %+v %v", o, err)
	}
}

func TestRetain_ReleasesEveryGeneration(t *testing.T) {
	o, err := job{Kind: retain, Streams: 3, Events: 10, Measure: 30 * time.Millisecond, Data: t.TempDir()}.do(t.Context())
	if err != nil || o.Events != generations*30 || o.LatencyP999 == 0 || o.ReleasingP999 == 0 || o.Grown < 1 {
		t.Errorf("got %+v %v", o, err)
	}
}

func TestKeep_StoresWholeRuns(t *testing.T) {
	dir := t.TempDir()
	if err := keep(t.Context(), []string{dir, "20"}); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() // it was only read from
	runs := 0
	for run, err := range store.List(t.Context(), buffer.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		runs++
		if run.State != buffer.Completed || run.Head != keptEvents || run.Bytes != keptEvents*eventSize {
			t.Errorf("run %s: %s, %d chunks, %d bytes", run.ID, run.State, run.Head, run.Bytes)
		}
	}
	if runs != 20 {
		t.Errorf("got %d runs", runs)
	}
}

func TestCatchUp_ChecksWhatItReads(t *testing.T) {
	const events = 50
	for _, tt := range []struct {
		name string
		end  string
		ok   bool
	}{{"whole", doneEvent, true}, {"cut short", "", false}} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from, _ := strconv.Atoi(r.FormValue("from")) // of the bench's own making
				for i := from; i < events; i++ {
					fmt.Fprint(w, testEvent(i))
				}
				fmt.Fprint(w, tt.end)
			}))
			defer srv.Close()
			o, err := job{Kind: catchup, Base: srv.URL, Run: "x", Events: events, Measure: 20 * time.Millisecond}.do(t.Context())
			if (err == nil) != tt.ok {
				t.Fatalf("got %+v %v", o, err)
			}
			if tt.ok && (o.Events < events || o.Bytes < events*eventSize) {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestAllocations_ReadsTheServicesOwnWord(t *testing.T) {
	body := "# TYPE go_memstats_mallocs_total counter\ngo_memstats_mallocs_total 1.25e+06\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	defer srv.Close()
	if got, err := allocations(srv.URL); err != nil || got != 1.25e6 {
		t.Errorf("got %v %v", got, err)
	}
	body = "spool_live_runs 0\n"
	if _, err := allocations(srv.URL); err == nil {
		t.Error("nothing told: no error")
	}
	if got, err := allocations(""); err != nil || got != 0 {
		t.Errorf("nowhere: got %v %v", got, err)
	}
}

func TestFamilies_HasTheProcessesThatWereStarted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if all := families([]int{os.Getpid()}); !slices.Contains(all, cmd.Process.Pid) {
		t.Errorf("%d is not in %v", cmd.Process.Pid, all)
	}
	if _, err := processIO(strconv.Itoa(cmd.Process.Pid), ioWritten); err != nil {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it has read its end
}
