package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packaged is the one program that npm has installed for this platform at a path.
func packaged(t *testing.T, pattern ...string) string {
	t.Helper()
	pattern = append([]string{"js", "node_modules"}, pattern...)
	found, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", filepath.Join(pattern...), found, err)
	}
	return absolute(t, found[0])
}

// denoCommand is a command of Deno's over programs that have their packages, by npm: names, from where npm
// has put them.
func denoCommand(t *testing.T, command string) []string {
	return []string{packaged(t, "@deno", "*", "deno"), command, "--quiet", "--no-check", "--cached-only", "--allow-all"}
}

// runNode runs node in a folder and returns what it printed.
func runNode(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	return runIn(t, dir, append([]string{"node"}, args...)...)
}

// runIn runs a command in a folder and returns what it printed.
func runIn(t *testing.T, dir string, command ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

// ownTests are the client's own tests, as its folder names them.
func ownTests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(jsClient, "test", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for i, file := range files {
		files[i] = filepath.Join("test", filepath.Base(file))
	}
	return files
}

func jsUnitTests(t *testing.T, _ *rig) {
	runNode(t, jsClient, append([]string{"--test", "--test-timeout=60000"}, ownTests(t)...)...)
}

func denoUnitTests(t *testing.T, _ *rig) {
	runIn(t, jsClient, append(denoCommand(t, "test"), ownTests(t)...)...)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// link makes a link to a path of this folder.
func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(absolute(t, to), from); err != nil {
		t.Fatal(err)
	}
}
