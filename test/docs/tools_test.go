package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// tools are what the blocks need, each made once, when the first one asks.
type tools struct {
	program func() (string, error) // the binary
	modules func() (string, error) // node_modules with the JavaScript SDKs, in the versions of test/sdk, and our own client
}

func newTools(dir string) tools {
	return tools{
		program: sync.OnceValues(func() (string, error) {
			program := filepath.Join(dir, "bin", "spool")
			return program, run(repository, "go", "build", "-o", program, "./cmd/spool")
		}),
		modules: sync.OnceValues(func() (string, error) { return install(filepath.Join(dir, "js")) }),
	}
}

func install(dir string) (string, error) {
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(repository, "test", "sdk", "js", name))
		if err != nil {
			return "", err
		}
		if err := write(filepath.Join(dir, name), b); err != nil {
			return "", err
		}
	}
	if err := run(dir, "npm", "ci", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	modules := filepath.Join(dir, "node_modules")
	client, err := filepath.Abs(filepath.Join(repository, "clients", "js"))
	if err != nil {
		return "", err
	}
	scope := filepath.Join(modules, "@spool-dev")
	if err := os.MkdirAll(scope, 0o755); err != nil {
		return "", err
	}
	return modules, os.Symlink(client, filepath.Join(scope, "client"))
}

// linkModules gives a page's folder the modules.
func linkModules(t *testing.T, tools tools, dir string) {
	t.Helper()
	modules, err := tools.modules()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

func run(dir string, command ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w\n%s", command, err, out)
	}
	return nil
}
