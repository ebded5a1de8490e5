// Package binary builds the service as it is shipped, and runs it as a process of its own, life after
// life.
package binary

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is what is built.
const program = "github.com/spool-dev/spool/cmd/spool"

// sources lists the files of this module that the binary is made of.
const sources = `{{if .Module}}{{if .Module.Main}}{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`

// Build makes the binary in a folder, without the race detector, and returns its path. Flags are go
// build's, such as -tags. It looks at each of the sources, so that go test does not take an old result
// for one of theirs.
func Build(ctx context.Context, dir string, flags ...string) (path string, err error) {
	list, err := exec.CommandContext(ctx, "go", append(append([]string{"list"}, flags...), "-deps", "-f", sources, program)...).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	for file := range strings.FieldsFuncSeq(string(list), func(r rune) bool { return r == '\n' }) {
		if _, err := os.Stat(file); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, "spool")
	out, err := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", path, program)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
