package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	tools, left := newTools(t.TempDir()), 0
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
const notRun = 27

func runPage(t *testing.T, tools tools, blocks []block) {
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
			linkModules(t, tools, dir)
		}
		program, err := tools.program()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(os.Environ(), "SPOOL_HEALTH_URL="+g.URL, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
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
