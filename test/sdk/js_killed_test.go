package sdk

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// slowly is what the emulator says to that prompt: slowly enough to be killed in the middle.
const slowly = "One word after another, with so long a pause between them that a reader can be killed in the middle."

// agent makes a program that prints the answer of a model, with its state in a folder. resume is the
// client's option.
type agent func(t *testing.T, r *rig, model, resume, state string) *exec.Cmd

// jsKilledAgents kills agents in mid-answer and starts them again: the one of the client's examples, and one
// of each SDK. A helper of an SDK needs the whole stream, so the rest is for those that read raw events.
func jsKilledAgents(t *testing.T, r *rig) {
	cases := map[string]struct {
		agent   agent
		client  client
		resumes []string
	}{
		"example":           {exampleAgent, named(t, "openai-chat"), []string{"whole", "rest"}},
		"openai in Deno":    {sdkAgent("openai-chat", denoCommand(t, "run")...), named(t, "openai-chat"), []string{"whole", "rest"}},
		"anthropic in Deno": {sdkAgent("anthropic", denoCommand(t, "run")...), named(t, "anthropic"), []string{"whole"}},
	}
	for sdk, names := range jsSDKs {
		c := cases[sdk]
		c.agent, c.client, c.resumes = sdkAgent(names[0], "node"), named(t, names[0]), []string{"whole"}
		cases[sdk] = c
	}
	for name, c := range cases {
		for _, resume := range c.resumes {
			t.Run(name+" "+resume, func(t *testing.T) {
				t.Parallel()
				model := c.client.model("killed " + strings.Trim(name, "@") + " " + resume)
				state := t.TempDir()
				before := killAfter(t, c.agent(t, r, model, resume, state), filepath.Join(state, "spool%3Acount"))
				after, err := c.agent(t, r, model, resume, state).Output()
				if err != nil {
					t.Fatal(err)
				}
				wentOn(t, resume, before, string(after))
				if n := r.purchases(t)[model]; n != 1 {
					t.Errorf("bought %d times", n)
				}
			})
		}
	}
}

// wentOn checks what a killed agent and the next one have read.
func wentOn(t *testing.T, resume, first, second string) {
	t.Helper()
	switch {
	case first == "" || first == slowly || !strings.HasPrefix(slowly, first):
		t.Errorf("the killed agent read %q", first)
	case resume == "whole" && second != slowly:
		t.Errorf("the next one read %q", second)
	case resume == "rest" && (second == slowly || !strings.HasSuffix(slowly, second) || len(first)+len(second) < len(slowly)):
		t.Errorf("the killed agent read %q, the next one %q", first, second)
	}
}

// exampleAgent is examples/file.mjs, as a user has it.
func exampleAgent(t *testing.T, r *rig, model, resume, state string) *exec.Cmd {
	dir := t.TempDir()
	link(t, filepath.Join(dir, "node_modules", "openai"), filepath.Join("js", "node_modules", "openai"))
	link(t, filepath.Join(dir, "node_modules", "@spool-dev", "client"), jsClient)
	source, err := os.ReadFile(filepath.Join(jsClient, "examples", "file.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "agent.mjs")
	if err := os.WriteFile(program, source, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", program, "slowly")
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=k", "SPOOL_URL="+r.spool, "PROVIDER=emu",
		"MODEL="+model, "RESUME="+resume, "STATE="+state)
	return cmd
}

// sdkAgent is js/agent.mjs with one of the clients, in some runtime.
func sdkAgent(client string, runtime ...string) agent {
	return func(t *testing.T, r *rig, model, resume, state string) *exec.Cmd {
		args := append(runtime[1:len(runtime):len(runtime)], filepath.Join("js", "agent.mjs"), client, r.spool+"/emu", r.spool, model, state, resume)
		cmd := exec.CommandContext(t.Context(), runtime[0], args...)
		cmd.Stderr = os.Stderr
		return cmd
	}
}

// read finds a state that says that something was read.
var read = regexp.MustCompile(`"position":[1-9]`)

// killAfter kills a program when its state says that it has read something and it has printed some of it,
// and returns all that it printed.
func killAfter(t *testing.T, cmd *exec.Cmd, state string) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewReader(out)
	if start, err := printed.Peek(20); err != nil {
		t.Fatalf("it printed %q: %v", start, err)
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for kept, _ := os.ReadFile(state); !read.Match(kept); kept, _ = os.ReadFile(state) { // not there yet is not read yet
		<-again.C
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(printed)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended before it was killed")
	}
	return string(all)
}
