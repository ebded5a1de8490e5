package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script. It is made of the command line as this program understands it.
func (c completionCmd) Run(app *kong.Kong) error {
	write := map[string]func(io.Writer, *kong.Application){"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	write(app.Stdout, app.Model)
	return nil
}

// completions are what may follow a command: its own commands, its flags, and the values of its arguments where
// they are known.
func completions(command *kong.Node) (all []string) {
	for _, c := range command.Children {
		all = append(all, c.Name)
	}
	if command.Type != kong.ApplicationNode { // its flags are every command's
		for _, f := range flagsOf(command) {
			all = append(all, "--"+f.Name)
		}
	}
	for _, a := range command.Positional {
		all = append(all, choices(a)...)
	}
	return all
}

// flagsOf are the flags of a command, and those that all have.
func flagsOf(command *kong.Node) (all []*kong.Flag) {
	for _, group := range command.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// choices are the values that a flag or an argument may have, where they are few.
func choices(v *kong.Value) (all []string) {
	if v.Enum == "" {
		return nil
	}
	for _, c := range v.EnumSlice() {
		if c != "" {
			all = append(all, c)
		}
	}
	return all
}

// isFile reports whether a value is a path.
func isFile(v *kong.Value) bool {
	return v.Tag.Type == "path" || strings.Contains(v.Tag.PlaceHolder, "FILE") || strings.Contains(v.Tag.PlaceHolder, "DIR")
}

// commandsOf are all commands, and those that they have of their own, each by its whole name; the application
// itself is "".
func commandsOf(app *kong.Application) (all []*kong.Node) {
	var add func(*kong.Node)
	add = func(n *kong.Node) {
		all = append(all, n)
		for _, c := range n.Children {
			add(c)
		}
	}
	add(app.Node)
	return all
}

func nameOf(command *kong.Node) string {
	if command.Type == kong.ApplicationNode {
		return ""
	}
	return strings.TrimSpace(nameOf(command.Parent) + " " + command.Name)
}

// steps are the words that lead from a command to one of its own, behind the command's name: " cluster",
// "cluster init".
func steps(app *kong.Application) string {
	var all []string
	for _, c := range commandsOf(app) {
		if c.Type != kong.ApplicationNode {
			all = append(all, fmt.Sprintf("'%s %s'", nameOf(c.Parent), c.Name))
		}
	}
	return strings.Join(all, " ")
}

func bashCompletion(w io.Writer, app *kong.Application) {
	fmt.Fprintf(w, `# bash completion of spool: eval "$(spool completion bash)"
_spool_offer() { # those of the words that go on as what is there does; zsh's compgen -W gives all
	local word
	for word in $1; do
		case "$word" in "$2"*) COMPREPLY+=("$word") ;; esac
	done
}
_spool() {
	local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command= word offers=
	COMPREPLY=()
	for word in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
		case "$command $word" in
		%s) command="${command:+$command }$word" ;;
		esac
	done
	case "$command $previous" in
`, strings.ReplaceAll(steps(app), "' '", "' | '"))
	for _, c := range commandsOf(app)[1:] {
		for _, f := range flagsOf(c) {
			name := nameOf(c) + " --" + f.Name
			switch values := choices(f.Value); {
			case len(values) > 0:
				fmt.Fprintf(w, "\t%q) _spool_offer %q \"$current\"; return ;;\n", name, strings.Join(values, " "))
			case isFile(f.Value):
				fmt.Fprintf(w, "\t%q) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n", name)
			case !f.IsBool():
				fmt.Fprintf(w, "\t%q) return ;;\n", name)
			}
		}
	}
	fmt.Fprint(w, "\tesac\n\tcase \"$command\" in\n")
	for _, c := range commandsOf(app) {
		fmt.Fprintf(w, "\t%q) offers=%q ;;\n", nameOf(c), strings.Join(completions(c), " "))
	}
	fmt.Fprint(w, `	esac
	_spool_offer "$offers" "$current"
	[ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -o filenames -F _spool spool
`)
}

// zshCompletion has zsh use bash's.
func zshCompletion(w io.Writer, app *kong.Application) {
	fmt.Fprint(w, "# zsh completion of spool: eval \"$(spool completion zsh)\"\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n")
	bashCompletion(w, app)
}

func fishCompletion(w io.Writer, app *kong.Application) {
	fmt.Fprintf(w, `# fish completion of spool: spool completion fish | source
function __spool_at # whether the words so far name that command
	set -l words (commandline -opc)
	set -e words[1]
	set -l command
	for word in $words
		switch "$command $word"
			case %s
				set command (string trim -- "$command $word")
		end
	end
	test "$command" = "$argv"
end
`, steps(app))
	for _, c := range commandsOf(app) {
		at := "complete -c spool -n " + fishQuoted(strings.TrimSpace("__spool_at "+nameOf(c)))
		for _, child := range c.Children {
			fmt.Fprintf(w, "%s -f -a %s -d %s\n", at, child.Name, fishQuoted(child.Help))
		}
		if c.Type == kong.ApplicationNode {
			continue
		}
		for _, f := range flagsOf(c) {
			needs := ""
			switch values := choices(f.Value); {
			case len(values) > 0:
				needs = " -x -a " + fishQuoted(strings.Join(values, " "))
			case isFile(f.Value):
				needs = " -r -F"
			case !f.IsBool():
				needs = " -x"
			}
			fmt.Fprintf(w, "%s -l %s%s -d %s\n", at, f.Name, needs, fishQuoted(f.Help))
		}
		for _, a := range c.Positional {
			if values := choices(a); len(values) > 0 {
				fmt.Fprintf(w, "%s -f -a %s\n", at, fishQuoted(strings.Join(values, " ")))
			}
		}
	}
}

func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
