package crash

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spool-dev/spool/test/binary"
)

const patience = binary.Patience

func build(t *testing.T, flags ...string) string {
	t.Helper()
	path, err := binary.Build(t.Context(), t.TempDir(), binary.Spool, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// service is the binary and what it is started with, life after life.
type service struct{ binary.Service }

// newService is one in front of a provider, whose base URL is given.
func newService(t *testing.T, path, provider string) service {
	t.Helper()
	return service{binary.Service{
		Path: path, Dir: filepath.Join(t.TempDir(), "data"), Args: []string{"--provider", "openai=" + provider}, Log: logFile(t),
	}}
}

// start starts a life. It does not wait until the process serves.
func (s service) start(t *testing.T, args ...string) *binary.Process {
	t.Helper()
	p, err := s.Start(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// serve starts a life and returns once it serves.
func (s service) serve(t *testing.T, args ...string) *binary.Process {
	t.Helper()
	p, err := s.Serve(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// code waits for the process's own end and returns its exit code.
func code(t *testing.T, p *binary.Process) int {
	t.Helper()
	code, err := p.Code()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// term asks the process to stop.
func term(t *testing.T, p *binary.Process) {
	t.Helper()
	if err := p.Term(); err != nil {
		t.Fatal(err)
	}
}

// logFile is where the processes of a test print to.
func logFile(t *testing.T) io.Writer {
	t.Helper()
	f, err := os.Create(filepath.Join(t.ArtifactDir(), "spool.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
