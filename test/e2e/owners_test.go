package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// asKilled is a copy of the rig's folder as a process that dies now would leave it.
func asKilled(t *testing.T, g *rig.Rig) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"spool.db", "spool.db-wal"} {
		b, err := os.ReadFile(filepath.Join(g.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What a reader has is in the folder, at whatever event the process dies.
func TestOwner_WhatAReaderHasSurvivesItsDeath(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "anthropic")
	var ops []fakellm.Op
	gates := make([]chan struct{}, len(s.events))
	for i, e := range s.events {
		if gates[i] = make(chan struct{}); i > s.preamble {
			ops = append(ops, fakellm.Gate(gates[i]))
		}
		ops = append(ops, fakellm.Bytes(e))
	}
	g.Fake.Script("primary", fakellm.Stream(s.contentType, ops...))
	resp := g.Open("POST", s.path, s.body)
	defer resp.Body.Close()
	id := mustULID(t, resp.Header.Get("X-Buffer-Run-Id"))
	for n, e := range s.events {
		close(gates[n])
		take(t, resp, len(e))
		if n < s.preamble {
			continue // these came with the first content, in one commit
		}
		store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: asKilled(t, g)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		var stored []byte
		page, err := store.Read(t.Context(), id, 0, 1<<20)
		for _, c := range page.Chunks {
			stored = append(stored, c.Data...)
		}
		if err != nil || !bytes.HasPrefix(stored, s.first(n+1)) || page.Run.State.Live() {
			t.Errorf("a reader had %d events; after the death there are %d bytes, state %s, %v", n+1, len(stored), page.Run.State, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A run whose owner has died has ended: who comes for it gets what there is, and then that it is not
// whole. Nobody waits, and nothing is bought.
func TestOwner_RunOfADeadOneEndsForEveryReader(t *testing.T) {
	t.Parallel()
	before := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	const at = 4
	id, open := s.begin(t, before, at, "Idempotency-Key", "turn")
	defer open()
	g := rig.New(t, rig.Options{Dir: asKilled(t, before)})

	status := g.Do("GET", "/runs/"+id, "")
	if !strings.Contains(string(status.Body), `"state":"interrupted"`) || !strings.Contains(string(status.Body), `"reason":"owner_lost"`) {
		t.Errorf("its status: %s", status.Body)
	}
	for _, path := range []string{"/runs/" + id + "/resume?from=%d", "/resume?key=turn&from=%d", "/runs/" + id + "/resume?from=%d&wait=5m"} {
		for from := range at + 1 {
			a := g.Do("GET", fmt.Sprintf(path, from), "")
			if !bytes.Equal(a.Body, s.first(at)[len(s.first(from)):]) || !errors.Is(a.Err, io.ErrUnexpectedEOF) {
				t.Errorf(path+": %d bytes, ended with %v", from, len(a.Body), a.Err)
			}
		}
	}
	again := s.say(g, "Idempotency-Key", "turn")
	told, whole := bytes.CutPrefix(again.Body, s.first(at))
	if !whole || again.Err == nil || !bytes.Contains(told, []byte("owner_lost")) {
		t.Errorf("the call again: %q, ended with %v", again.Body, again.Err)
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("bought %d times", n)
	}
}

// A cursor of a store that is no more is never taken for one of the store that stands in its place:
// no reader gets another answer's events, or the same positions with other bytes.
func TestOwner_CursorOfAnotherStoreIsRefused(t *testing.T) {
	t.Parallel()
	before := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	const backup = 3
	id, open := s.begin(t, before, backup, "Idempotency-Key", "turn")
	restored := rig.New(t, rig.Options{Dir: asKilled(t, before)})
	open()
	before.Await(id, buffer.Completed)

	for from := range len(s.events) + 1 {
		a := restored.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, from), "")
		switch {
		case from > backup:
			if a.Status != http.StatusRequestedRangeNotSatisfiable || a.Header.Get("X-Buffer-Next") != fmt.Sprint(backup) {
				t.Errorf("restored, from %d: status %d, next %s; want 416, %d", from, a.Status, a.Header.Get("X-Buffer-Next"), backup)
			}
		case !bytes.Equal(a.Body, s.first(backup)[len(s.first(from)):]) || a.Err == nil:
			t.Errorf("restored, from %d: %q, ended with %v", from, a.Body, a.Err)
		}
	}

	fresh := rig.New(t, rig.Options{})
	other := s
	other.events = fakellm.Chat("another ", "answer ")
	other.play(fresh, len(other.events), nil)
	newer := other.say(fresh, "Idempotency-Key", "turn").RunID() // the key names another run there
	for _, row := range []struct {
		name, path string
		headers    []string
		status     int
	}{
		{"the old run", "/runs/" + id + "/resume?from=2", nil, http.StatusNotFound},
		{"the old run beside its key", "/resume?key=turn&run=" + id + "&from=2", nil, http.StatusNotFound},
		{"the old run in a header", "/resume?key=turn&from=2", []string{"X-Buffer-Run-Id", id}, http.StatusNotFound},
		{"an event of the old run", "/resume?key=turn", []string{"Last-Event-ID", id + ":1"}, http.StatusBadRequest},
		{"an event of the old run on the new", "/runs/" + newer + "/resume", []string{"Last-Event-ID", id + ":1"}, http.StatusBadRequest},
	} {
		if a := fresh.Do("GET", row.path, "", row.headers...); a.Status != row.status {
			t.Errorf("%s: status %d %s, want %d", row.name, a.Status, a.Body, row.status)
		}
	}
	if a := fresh.Do("GET", "/resume?key=turn&from=2", ""); a.RunID() != newer {
		t.Errorf("the key alone is answered by run %s, and says %q", newer, a.RunID())
	}
}
