package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

// rig is everything that the tests need running. It ends with the test that made it.
type rig struct {
	spool      string // base URLs
	emulator   string
	tapes      *fakellm.Server
	recordings []fakellm.Recording
	drivers    map[language][]string // commands
}

func newRig(t *testing.T) *rig {
	t.Helper()
	lookAtSources(t, filepath.Join("..", ".."))
	installPackages(t, "js")
	bin := t.TempDir()
	build(t, "go", bin, "clients", ".")
	build(t, filepath.Join("..", ".."), bin, "spool", "./cmd/spool")

	r := &rig{
		recordings: fakellm.Recordings(t),
		drivers: map[language][]string{
			js:     {"node", filepath.Join("js", "driver.mjs")},
			golang: {filepath.Join(bin, "clients")},
		},
	}
	r.tapes = fakellm.Start(t, fakellm.Config{Recordings: r.recordings})
	r.emulator = startEmulator(t)
	r.spool = startSpool(t, filepath.Join(bin, "spool"), r.emulator, r.tapes.URL)
	return r
}

// lookAtSources lists every folder of the repository. A cached result of this test is good only while
// the programs that it builds and runs are the same; go test takes a result from its cache unless
// something has changed that the test itself looked at.
func lookAtSources(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went between the listing and the look
			return nil
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func startEmulator(t *testing.T) string {
	port := freePort(t)
	url := "http://127.0.0.1:" + port
	start(t, "emulator", url+"/__aimock/journal", "node", filepath.Join("js", "node_modules", "@copilotkit", "aimock", "dist", "cli.js"),
		"--port", port, "--fixtures", "fixtures", "--strict", "--journal-max", "0", "--log-level", "warn")
	return url
}

func startSpool(t *testing.T, bin, emulator, tapes string) string {
	addr := "127.0.0.1:" + freePort(t)
	url := "http://" + addr
	start(t, "spool", url+"/readyz", bin, "serve", "--listen", addr, "--data", t.TempDir(),
		"--provider", "emu="+emulator, "--provider", "tape="+tapes)
	return url
}

// build builds a command of the module in dir.
func build(t *testing.T, dir, bin, name, pkg string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, name), pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
}

// installPackages installs what the lock file of dir pins, unless that was done since it changed.
func installPackages(t *testing.T, dir string) {
	t.Helper()
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	installed, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err == nil && !installed.ModTime().Before(lock.ModTime()) {
		return
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
}

// purchases returns how many calls the emulator got, by model.
func (r *rig) purchases(t *testing.T) map[string]int {
	t.Helper()
	var journal []struct {
		Body struct {
			Model string `json:"model"`
		} `json:"body"`
	}
	getJSON(t, r.emulator+"/__aimock/journal", &journal)
	calls := make(map[string]int)
	for _, entry := range journal {
		calls[entry.Body.Model]++
	}
	return calls
}

func getJSON(t *testing.T, url string, into any) {
	t.Helper()
	resp, err := get(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

func get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}
