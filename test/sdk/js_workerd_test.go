package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spool-dev/spool/test/cutter"
)

// The compatibility date is the oldest that our client runs with, without any flag.
const workerConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .agent), (name = "internet", network = (allow = ["private", "local"]))],
  sockets = [(name = "http", address = %q, http = (), service = "main")],
);
const agent :Workerd.Worker = (compatibilityDate = "2024-01-01", modules = [
%s]);
`

// workerJob is what js/worker.mjs is asked.
type workerJob struct {
	Base    string `json:"base"`
	BaseURL string `json:"baseUrl"`
	Model   string `json:"model"`
	Store   string `json:"store"`
	Resume  string `json:"resume,omitempty"`
}

// startWorker starts js/worker.mjs in a workerd of its own and returns its URL. Its modules are the files of
// our client and of the SDK as they are published.
func startWorker(t *testing.T) (string, *process) {
	t.Helper()
	dir := t.TempDir()
	link(t, filepath.Join(dir, "worker.mjs"), filepath.Join("js", "worker.mjs"))
	link(t, filepath.Join(dir, "client"), filepath.Join(jsClient, "src"))
	link(t, filepath.Join(dir, "openai"), filepath.Join("js", "node_modules", "openai"))

	var modules strings.Builder
	module := func(path string) { fmt.Fprintf(&modules, "  (name = %q, esModule = embed %[1]q),\n", path) }
	module("worker.mjs")
	for folder, ext := range map[string]string{"client": ".js", "openai": ".mjs"} {
		err := fs.WalkDir(os.DirFS(filepath.Join(dir, folder)), ".", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && filepath.Ext(path) == ext {
				module(folder + "/" + path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	addr := "127.0.0.1:" + freePort(t)
	config := filepath.Join(dir, "config.capnp")
	if err := os.WriteFile(config, fmt.Appendf(nil, workerConfig, addr, modules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "http://" + addr
	return url, start(t, "workerd", url, packaged(t, "@cloudflare", "workerd-*", "bin", "workerd"), "serve", config)
}

// askWorker sends a worker its job and returns the answer, which is open.
func askWorker(t *testing.T, url string, job workerJob) io.ReadCloser {
	t.Helper()
	body, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.Body
}

// workerStore is a store over HTTP, as Workers have theirs. moved gets a word with every write.
type workerStore struct {
	url   string
	moved chan struct{}

	mu   sync.Mutex
	kept map[string][]byte
}

func startWorkerStore(t *testing.T) *workerStore {
	s := &workerStore{kept: map[string][]byte{}, moved: make(chan struct{}, 1)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *workerStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the worker was killed in mid-write
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPut {
		s.kept[r.URL.Path] = body
		select {
		case s.moved <- struct{}{}:
		default: // whoever waits looks at the newest
		}
		return
	}
	value, ok := s.kept[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write(value) // the worker tells if it lacks it
}

func (s *workerStore) get(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept["/"+name]
}

// workerCutConnections cuts what lies between a Worker and Spool.
func workerCutConnections(t *testing.T, r *rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	proxy := cutter.Start(t, r.spool, cutter.First(manyCuts(rand.New(rand.NewPCG(seed, 0)))...))
	url, _ := startWorker(t)
	job := workerJob{Base: proxy.URL + "/emu", BaseURL: proxy.URL, Model: "lab-worker-cut", Store: startWorkerStore(t).url}
	if text, err := io.ReadAll(askWorker(t, url, job)); err != nil || string(text) != slowly {
		t.Errorf("it read %q, %v", text, err)
	}
	if n := r.purchases(t)[job.Model]; n != 1 {
		t.Errorf("bought %d times", n)
	}
	if n := proxy.Cuts(); n < jsCutsOfStream {
		t.Errorf("cut %d times only", n)
	}
}

// killedWorker kills a workerd in mid-answer. The next one goes on from the state in the store.
func killedWorker(t *testing.T, r *rig) {
	for _, resume := range []string{"whole", "rest"} {
		t.Run(resume, func(t *testing.T) {
			t.Parallel()
			store := startWorkerStore(t)
			job := workerJob{Base: r.spool + "/emu", BaseURL: r.spool, Model: "lab-worker-killed-" + resume, Store: store.url, Resume: resume}
			url, workerd := startWorker(t)
			answer := askWorker(t, url, job)
			for !read.Match(store.get("spool:count")) {
				<-store.moved
			}
			first := make([]byte, 12)
			if _, err := io.ReadFull(answer, first); err != nil {
				t.Fatal(err)
			}
			if err := workerd.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-workerd.exited
			more, err := io.ReadAll(answer)
			if err == nil {
				t.Error("it ended before it was killed")
			}
			url, _ = startWorker(t)
			second, err := io.ReadAll(askWorker(t, url, job))
			if err != nil {
				t.Fatal(err)
			}
			wentOn(t, resume, string(first)+string(more), string(second))
			if n := r.purchases(t)[job.Model]; n != 1 {
				t.Errorf("bought %d times", n)
			}
		})
	}
}
