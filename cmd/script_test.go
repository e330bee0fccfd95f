//go:build unix

package cmd_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/schematest"
	"github.com/meshctl/meshctl/cmd/terminaltest"
	"github.com/meshctl/meshctl/engine/golden"
)

// TestMain lets scripts run this test binary as meshctl.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"meshctl": func() { os.Exit(cmd.Main(os.Args[1:])) },
	})
}

// TestScript runs every script of testdata/script on the whole program. Scripts
// find the cases of testdata/translate under $CASES, a kubeconfig of a server that refuses
// connections under $DEAD, and beside the commands of testscript:
//
//	exits CODE PROGRAM...               as exec; the program exits with CODE
//	terminal COLSxROWS KEYS PROGRAM...  as exec, in a terminal; see terminal
//	valid COMMAND...                    standard output is what the schema of the command says
func TestScript(t *testing.T) {
	t.Parallel()
	runScripts(t, "../testdata/script", nil, func(*testscript.Env) error { return nil })
}

// runScripts runs the scripts of a folder; own are commands of theirs, and setup adds to the environment.
func runScripts(t *testing.T, dir string, own map[string]func(*testscript.TestScript, bool, []string), setup func(*testscript.Env) error) {
	t.Helper()
	commands := map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "terminal": terminal, "valid": valid}
	maps.Copy(commands, own)
	cases, err := filepath.Abs("../testdata/translate")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       golden.Update(),
		RequireExplicitExec: true,
		Cmds:                commands,
		Setup: func(env *testscript.Env) error {
			dead := filepath.Join(env.WorkDir, ".dead")
			env.Setenv("CASES", cases)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
			env.Setenv("DEAD", dead)
			env.Values[testerKey] = env.T()
			if err := os.WriteFile(dead, []byte(deadKubeconfig), 0o600); err != nil {
				return err
			}
			return setup(env)
		},
	})
}

// deadKubeconfig names a server that refuses connections.
const deadKubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"dead",
	"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],
	"contexts":[{"name":"dead","context":{"cluster":"c"}},{"name":"other","context":{"cluster":"c"}}]}`

// testerKey is the value of scripts that is their testing.TB.
const testerKey = "tester"

// exits is the command of scripts that runs a program and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want, err := strconv.Atoi(args[0]); err != nil || code != want {
		ts.Fatalf("it exits with %d, not %s", code, args[0])
	}
}

// valid is the command of scripts that checks what the last program has printed with -o json or yaml.
func valid(ts *testscript.TestScript, neg bool, args []string) {
	if t, ok := ts.Value(testerKey).(testing.TB); !neg && ok {
		schematest.Valid(t, strings.Join(args, " "), ts.ReadFile("stdout"))
		return
	}
	ts.Fatalf("usage: valid COMMAND...")
}

// keys are those that a line of the file of terminal can name.
var keys = map[string]string{
	"enter": terminaltest.Enter, "esc": terminaltest.Esc, "down": terminaltest.Down, "space": terminaltest.Space, "ctrl-c": terminaltest.CtrlC,
}

// terminal is the command of scripts that runs meshctl in a terminal. KEYS is a file with a line
// "QUESTION => KEY..." for each time that something is typed, or -; a KEY is one of keys, or text. The
// screen becomes standard output, and what was written with its escape sequences standard error. With
// !, the program must fail.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: [!] terminal COLSxROWS KEYS PROGRAM...")
	}
	var cols, rows int
	if _, err := fmt.Sscanf(args[0], "%dx%d", &cols, &rows); err != nil {
		ts.Fatalf("%s: want COLSxROWS", args[0])
	}
	t, _ := ts.Value(testerKey).(testing.TB)
	self, err := os.Executable()
	ts.Check(err)
	program := exec.Command(self)
	program.Args, program.Dir = args[2:], ts.MkAbs(".")
	for _, name := range []string{"HOME", "KUBECONFIG", "TMPDIR"} {
		program.Env = append(program.Env, name+"="+ts.Getenv(name))
	}
	program.Env = append(program.Env, "ACCESSIBLE="+ts.Getenv("ACCESSIBLE"))
	for _, name := range []string{"LC_ALL", "TERM"} {
		if value := ts.Getenv(name); value != "" {
			program.Env = append(program.Env, name+"="+value)
		}
	}
	x := terminaltest.Start(t, program, cols, rows)
	if args[1] != "-" {
		for line := range strings.Lines(ts.ReadFile(args[1])) {
			question, typed, found := strings.Cut(strings.TrimSpace(line), " => ")
			if !found {
				ts.Fatalf("%s: want QUESTION => KEY...", line)
			}
			var pressed []string
			for word := range strings.FieldsSeq(typed) {
				pressed = append(pressed, cmp.Or(keys[word], word))
			}
			x.Answer(question, pressed...)
		}
	}
	if code := x.Code(); (code != 0) != neg {
		ts.Fatalf("it exits with %d:\n%s", code, x)
	}
	_, err = io.WriteString(ts.Stdout(), x.String())
	ts.Check(err)
	_, err = io.WriteString(ts.Stderr(), strings.ReplaceAll(x.Raw(), terminaltest.EndMark, ""))
	ts.Check(err)
}
