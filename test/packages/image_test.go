package packages

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func TestImage_DockerfileLints(t *testing.T) {
	f, err := os.Open("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Error(w.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, description, url, message string, _ []parser.Range) {
		t.Errorf("%s: %s: %s (%s)", rule, description, message, url)
	}})
	stages, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	if first := stages[0].Platform; first != "$BUILDPLATFORM" {
		t.Errorf("the compiler's stage is for %q: it would be emulated", first)
	}
	user, health := "", false
	for _, c := range stages[len(stages)-1].Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.HealthCheckCommand:
			health = true
		}
	}
	if user == "" || user == "root" || strings.HasPrefix(user, "0") || !health {
		t.Errorf("user %q, a health check: %v", user, health)
	}
}

func TestImage_ComposeFilesAreSound(t *testing.T) {
	for file, nodes := range map[string][]string{"compose.yaml": {"spool"}, "compose.cluster.yaml": {"spool1", "spool2", "spool3"}} {
		t.Run(file, func(t *testing.T) {
			project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
				WorkingDir: "../../deploy", ConfigFiles: []types.ConfigFile{{Filename: "../../deploy/" + file}},
				Environment: types.Mapping{"SPOOL_SECRET": "a secret of all nodes of the cluster"},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range nodes {
				checkNode(t, project.Services[name])
			}
			for _, s := range project.Services {
				for _, p := range s.Ports {
					if p.HostIP != "127.0.0.1" {
						t.Errorf("%s: port %s is published to %q", s.Name, p.Published, p.HostIP)
					}
				}
			}
		})
	}
}

// checkNode checks a container of Spool's.
func checkNode(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	if s.Image == "" || !s.ReadOnly || len(s.CapDrop) == 0 || s.StopGracePeriod == nil {
		t.Fatalf("%+v", s)
	}
	if core := s.Ulimits["core"]; core == nil || core.Single+core.Soft+core.Hard != 0 {
		t.Errorf("%s: a core, which holds prompts and keys, may be written", s.Name)
	}
	grace := strings.TrimPrefix(s.Command[1], "--grace=")
	if kill := int64(time.Duration(*s.StopGracePeriod) / time.Second); !fits(t, grace, kill) {
		t.Errorf("the container is killed after %d s, the grace is %s", kill, grace)
	}
}
