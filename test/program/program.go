// Package program builds the programs of this module as they are shipped, for tests that run them.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const module = "github.com/spool-dev/spool/"

// sources lists the files of this module that a binary is made of.
const sources = `{{if .Module}}{{if .Module.Main}}{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`

// Build makes the binary of a package, like cmd/spool, in dir, without the race detector, and returns where
// it is. It looks at each of the sources, so that go test does not take an old result for one of theirs.
func Build(ctx context.Context, dir, name string) (string, error) {
	list, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f", sources, module+name).Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", name, err)
	}
	for file := range strings.FieldsFuncSeq(string(list), func(r rune) bool { return r == '\n' }) {
		if _, err := os.Stat(file); err != nil {
			return "", err
		}
	}
	binary := filepath.Join(dir, path.Base(name))
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, module+name).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}
