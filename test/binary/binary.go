// Package binary builds this module's programs as they are shipped, and runs the service as a process of its
// own, life after life.
package binary

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

// Spool is the service, among the module's programs.
const Spool = "cmd/spool"

// sources lists the files of this module that the binary is made of.
const sources = `{{if .Module}}{{if .Module.Main}}{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`

// Build makes the program, which is named by its folder in the module, in a folder, without the race detector,
// and returns its path. Flags are go build's, such as -tags. It looks at each of the sources, so that go test
// does not take an old result for one of theirs.
func Build(ctx context.Context, dir, program string, flags ...string) (file string, err error) {
	list, err := exec.CommandContext(ctx, "go", append(append([]string{"list"}, flags...), "-deps", "-f", sources, module+program)...).Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", program, err)
	}
	for source := range strings.FieldsFuncSeq(string(list), func(r rune) bool { return r == '\n' }) {
		if _, err := os.Stat(source); err != nil {
			return "", err
		}
	}
	file = filepath.Join(dir, path.Base(program))
	out, err := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", file, module+program)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", program, err, out)
	}
	return file, nil
}
