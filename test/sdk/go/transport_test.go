package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"google.golang.org/genai"

	spool "github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
)

const randomCuts = 200 // of each SDK

// Each SDK reads whole answers over connections that are cut again and again, and each is bought once.
func TestTransport_SDKsSeeNoCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	fake := fakellm.Start(t, fakellm.Config{})
	direct := startSpool(t, fake)
	cut := cutter.Start(t, direct.BaseURL, func(int) cutter.Cut { return cutter.Anywhere(random, 4000) })
	for _, s := range sdks {
		t.Run(s.client, func(t *testing.T) {
			fake.Script("primary", fakellm.Stream(s.contentType, fakellm.Play(s.events(text...), 0)...))
			want := run(job{Client: s.client, Base: direct.BaseURL + s.provider})
			calls, before, bought := 0, cut.Cuts(), fake.Count("primary")
			for ; cut.Cuts() < before+randomCuts; calls++ {
				if got := run(job{Client: s.client, Base: cut.URL + s.provider, Spool: cut.URL, Backoff: 1}); !got.OK || got != want {
					t.Fatalf("after %d cuts %+v\nwithout %+v", cut.Cuts()-before, got, want)
				}
			}
			if n := fake.Count("primary") - bought; n != calls {
				t.Errorf("%d calls were bought %d times", calls, n)
			}
		})
	}
}

// An agent that is killed in mid-answer and makes its call again with the same key gets the same run,
// whole, and nothing is bought again.
func TestTransport_SameKeyAfterAKill(t *testing.T) {
	fake := fakellm.Start(t, fakellm.Config{})
	c := startSpool(t, fake)
	for _, s := range sdks {
		t.Run(s.client, func(t *testing.T) {
			events := s.events(text...)
			want := result{}
			gate := make(chan struct{})
			ops := append(fakellm.Play(events[:8], 0), fakellm.Gate(gate))
			fake.Script("primary", fakellm.Stream(s.contentType, append(ops, fakellm.Play(events[8:], 0)...)...))
			bought, before := fake.Count("primary"), len(runs(t, c))
			j := job{ID: "again", Client: s.client, Base: c.BaseURL + s.provider, Spool: c.BaseURL, Key: "order 17 of " + s.client}

			agent := startAgent(t, j)
			if err := fake.Await(t.Context(), func([]fakellm.Request) bool { return fake.Count("primary") > bought }); err != nil {
				t.Fatal(err)
			}
			id := runs(t, c)[0]
			readSome(t, c, id, len(bytes.Join(events[:8], nil)))
			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = agent.Wait() // it was killed
			close(gate)

			out, err := again(t, j)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(out, &want); err != nil || !want.OK || want.Text != fakellm.DefaultText {
				t.Errorf("%s %v", out, err)
			}
			if all := runs(t, c); all[0] != id || len(all) != before+1 || fake.Count("primary") != bought+1 {
				t.Errorf("%d new runs, bought %d times", len(all)-before, fake.Count("primary")-bought)
			}
		})
	}
}

// agentCommand is the program with one job.
func agentCommand(t *testing.T, j job) *exec.Cmd {
	t.Helper()
	jobs, err := json.Marshal([]job{j})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asAgent+"=1")
	cmd.Stdin = bytes.NewReader(jobs)
	return cmd
}

func startAgent(t *testing.T, j job) *exec.Cmd {
	t.Helper()
	cmd := agentCommand(t, j)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func again(t *testing.T, j job) ([]byte, error) {
	t.Helper()
	return agentCommand(t, j).Output()
}

// readSome returns once n bytes of the run are stored.
func readSome(t *testing.T, c *spool.Client, id string, n int) {
	t.Helper()
	stream, err := c.Resume(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := io.ReadFull(stream, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}

// down is a Spool that cannot be reached. It keeps the keys of the calls that it would have got.
type down struct{ keys []string }

func (d *down) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	d.keys = append(d.keys, req.Header.Get("Idempotency-Key"))
	return nil, errors.New("no route to host")
}

// However often an SDK tries by itself, one call of it has one key, and the next call another.
func TestTransport_OneCallOneKey(t *testing.T) {
	const base = "http://spool.test"
	for _, s := range sdks {
		t.Run(s.client, func(t *testing.T) {
			t.Parallel()
			wire := &down{}
			over := &http.Client{Transport: &spool.Transport{BaseURL: base, Base: wire, Patience: spool.Patience{Tries: 1, Backoff: time.Millisecond}}}
			j := job{Base: base + s.provider, Prompt: "hello", Retries: 2}
			read := clients[s.client]
			if s.client == "genai-go" {
				read = genaiRetries
			}
			var tries []int
			for range 2 {
				err := read(context.Background(), j, over, &reading{})
				if _, ok := errors.AsType[*spool.GiveUpError](err); !ok {
					t.Errorf("the SDK says %v", err)
				}
				tries = append(tries, len(wire.keys))
			}
			first, second := wire.keys[:tries[0]], wire.keys[tries[0]:]
			if len(first) != 6 || !alike(first) || !alike(second) || first[0] == second[0] {
				t.Errorf("keys %q, then %q", first, second)
			}
		})
	}
}

func alike(keys []string) bool {
	for _, k := range keys {
		if k != keys[0] {
			return false
		}
	}
	return len(keys) > 0
}

// genaiRetries is genai's client, told to try three times.
func genaiRetries(ctx context.Context, j job, over *http.Client, _ *reading) error {
	attempts, delay := int32(3), 0.01
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: over,
		HTTPOptions: genai.HTTPOptions{BaseURL: j.Base, RetryOptions: &genai.HTTPRetryOptions{Attempts: &attempts, MaxDelay: &delay}},
	})
	if err != nil {
		return err
	}
	for _, err := range client.Models.GenerateContentStream(ctx, "gemini-2.5-flash", genai.Text(j.Prompt), nil) {
		if err != nil {
			return err
		}
	}
	return nil
}
