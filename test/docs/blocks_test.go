package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/rig"
)

// runners are what is done with a block of each language, in a folder that belongs to its page.
// Python's SDKs are not installed: its blocks are compiled. Text is what is printed or drawn.
var runners = map[string]struct {
	file    string
	command []string // the file's path is added
}{
	"sh":     {"block.sh", []string{"bash", "-euo", "pipefail"}},
	"js":     {"block.mjs", []string{"node"}},
	"jsx":    {"block.jsx", nil},
	"go":     {"main.go", []string{"go", "run"}},
	"python": {"block.py", []string{"python3", "-m", "py_compile"}},
	"json":   {"block.json", []string{"python3", "-m", "json.tool"}},
	"toml":   {"block.toml", []string{"python3", "-c", "import sys, tomllib; tomllib.load(open(sys.argv[1], 'rb'))"}},
	"yaml":   {"block.yaml", nil},
	"text":   {"", nil},
}

// Every block of code in the documentation is run against a Spool with the scripted provider, those of
// one page one after the other in one folder. One that cannot be run says why.
func TestBlocks_Run(t *testing.T) {
	tools, left := &tools{t: t}, 0
	for _, p := range pages(t) {
		blocks, err := p.blocks()
		if err != nil {
			t.Error(err)
			continue
		}
		runs := false
		for _, b := range blocks {
			r, known := runners[b.language]
			if !known {
				t.Errorf("%s: no way to run %q", b.at, b.language)
			}
			if b.norun != "" {
				left++
				t.Logf("not run: %s: %s: %s", b.at, b.language, b.norun)
			}
			runs = runs || b.norun == "" && r.file != ""
		}
		if !runs {
			continue
		}
		t.Run(strings.TrimSuffix(p.path, ".md"), func(t *testing.T) {
			t.Parallel()
			runPage(t, tools, blocks)
		})
	}
	if left != notRun {
		t.Errorf("%d blocks are not run, want %d: see -v for their reasons", left, notRun)
	}
}

// notRun is how many blocks have a reason not to be run. One more should be a decision.
const notRun = 24

func runPage(t *testing.T, tools *tools, blocks []block) {
	g := rig.New(t, rig.Options{Routes: func(fake string) map[string]provider.Route { return routes(t, fake) }})
	dir := t.TempDir()
	here := strings.NewReplacer("http://127.0.0.1:8787", g.URL, "http://127.0.0.1:9001", g.Fake.URL)
	for _, b := range blocks {
		r := runners[b.language]
		if b.norun != "" || r.file == "" {
			continue
		}
		file := filepath.Join(dir, r.file)
		if err := os.WriteFile(file, []byte(here.Replace(b.code)), 0o600); err != nil {
			t.Fatal(err)
		}
		if b.language == "yaml" {
			if _, err := yaml.Parser().Unmarshal([]byte(b.code)); err != nil {
				t.Errorf("%s: %v", b.at, err)
			}
			continue
		}
		cmd := exec.CommandContext(t.Context(), r.command[0], append(r.command[1:], file)...)
		cmd.Dir = dir
		switch b.language {
		case "go":
			cmd.Dir = filepath.Join(repository, "test", "sdk", "go") // where the providers' SDKs are
		case "js":
			tools.link(dir)
		}
		cmd.Env = append(os.Environ(), "SPOOL_HEALTH_URL="+g.URL, "PATH="+tools.spool()+":"+os.Getenv("PATH"))
		for _, name := range keys {
			cmd.Env = append(cmd.Env, name+"=k")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", b.at, err, b.code, out)
		}
	}
}

// keys are the variables in which the examples expect a credential.
var keys = []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"}

// routes are the providers that are built in, all of them the scripted one.
func routes(t *testing.T, fake string) map[string]provider.Route {
	all := map[string]provider.Route{}
	for _, name := range []string{"openai", "anthropic", "gemini", "openrouter", "ollama", "bedrock"} {
		all[name] = provider.Route{Name: name, BaseURL: rig.Parse(t, fake+"/primary")}
	}
	return all
}

// tools are what the blocks need, made when the first one asks.
type tools struct {
	t              *testing.T // the one that outlives all pages
	mu             sync.Mutex // held while one is made: the others wait for it
	binary, module string
}

// spool is a folder with the program.
func (o *tools) spool() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.binary == "" {
		dir := o.t.TempDir()
		run(o.t, repository, "go", "build", "-o", filepath.Join(dir, "spool"), "./cmd/spool")
		o.binary = dir
	}
	return o.binary
}

// link gives a folder the JavaScript SDKs, in the versions of test/sdk, and our own client.
func (o *tools) link(dir string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.module == "" {
		where := o.t.TempDir()
		for _, name := range []string{"package.json", "package-lock.json"} {
			b, err := os.ReadFile(filepath.Join(repository, "test", "sdk", "js", name))
			if err != nil {
				o.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(where, name), b, 0o600); err != nil {
				o.t.Fatal(err)
			}
		}
		run(o.t, where, "npm", "ci", "--no-audit", "--no-fund")
		client, err := filepath.Abs(filepath.Join(repository, "clients", "js"))
		if err != nil {
			o.t.Fatal(err)
		}
		scope := filepath.Join(where, "node_modules", "@spool-dev")
		if err := os.MkdirAll(scope, 0o700); err != nil {
			o.t.Fatal(err)
		}
		if err := os.Symlink(client, filepath.Join(scope, "client")); err != nil {
			o.t.Fatal(err)
		}
		o.module = filepath.Join(where, "node_modules")
	}
	err := os.Symlink(o.module, filepath.Join(dir, "node_modules"))
	if err != nil && !os.IsExist(err) {
		o.t.Fatal(err)
	}
}

func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
}
