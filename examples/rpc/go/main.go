// Zot-rpc drives `zot rpc` with Go's standard library: one prompt in, what happens out.
//
//	zot-rpc [zot rpc flags...] -- PROMPT...
//
// Text and tool calls go to stdout as they come. Exit code: 0 when the run ended normally, 1 when it failed, 2 for
// wrong usage. ZOTCORE_RPC_TOKEN, when set, is sent with `hello`.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A command is what we send.
type command struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Token   string `json:"token,omitempty"`
	Message string `json:"message,omitempty"`
}

// A frame is what we get: the fields of every event that we show, and of a response.
type frame struct {
	Type    string
	Success bool
	Error   string
	Message string
	Delta   string
	Stop    string
	Name    string
	Args    json.RawMessage
	IsError bool `json:"is_error"`
	Content []block
}

type block struct {
	Type     string
	Text     string
	MimeType string `json:"mime_type"`
}

func main() {
	args := os.Args[1:]
	end := slices.Index(args, "--")
	if end < 0 || end == len(args)-1 {
		fmt.Fprintln(os.Stderr, "usage: zot-rpc [zot rpc flags...] -- PROMPT...")
		os.Exit(2)
	}
	if err := run(args[:end], strings.Join(args[end+1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run starts zot rpc with these flags, gives it one prompt, shows the run and ends the process by closing its input.
func run(flags []string, prompt string) error {
	zot := exec.Command("zot", append([]string{"rpc"}, flags...)...)
	zot.Stderr = os.Stderr
	stdin, err := zot.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := zot.StdoutPipe()
	if err != nil {
		return err
	}
	if err := zot.Start(); err != nil {
		return err
	}
	send := json.NewEncoder(stdin) // writes a newline after each value
	err = errors.Join(
		send.Encode(command{ID: "0", Type: "hello", Token: os.Getenv("ZOTCORE_RPC_TOKEN")}),
		send.Encode(command{ID: "1", Type: "prompt", Message: prompt}),
		showRun(json.NewDecoder(stdout)),
		stdin.Close(),
	)
	io.Copy(io.Discard, stdout) // Wait must not be called before the pipe is read to its end
	return errors.Join(err, zot.Wait())
}

// showRun shows frames until `done`. It fails when the last turn did not stop with `end_turn` (some versions say
// `end`), when a command was refused, and when the process ended too early.
func showRun(frames *json.Decoder) error {
	var stop, reason string
	for {
		var next frame
		if err := frames.Decode(&next); err == io.EOF {
			return errors.New("zot rpc ended before the run did")
		} else if err != nil {
			return err
		}
		switch {
		case next.Type == "turn_end":
			stop, reason = next.Stop, next.Error
		case next.Type == "error":
			reason = next.Message
		case next.Type == "response" && !next.Success:
			return errors.New(next.Error)
		case next.Type != "done":
			show(next)
		case stop == "end_turn" || stop == "end":
			return nil
		case reason != "":
			return errors.New(reason)
		default:
			return fmt.Errorf("the run stopped: %s", stop)
		}
	}
}

// show prints what one event has to say; events that this program does not know say nothing.
func show(event frame) {
	switch event.Type {
	case "text_delta":
		fmt.Print(event.Delta)
	case "assistant_message":
		if slices.ContainsFunc(event.Content, func(b block) bool { return b.Type == "text" }) {
			fmt.Println()
		}
	case "tool_call":
		var args bytes.Buffer
		json.Compact(&args, event.Args)
		fmt.Printf("[call] %s %s\n", event.Name, &args)
	case "tool_result":
		label := "result"
		if event.IsError {
			label = "error"
		}
		fmt.Printf("[%s] %s\n", label, firstLine(event.Content))
	}
}

func firstLine(content []block) string {
	if len(content) == 0 {
		return ""
	}
	if content[0].Type == "image" {
		return "[" + content[0].MimeType + "]"
	}
	line, _, _ := strings.Cut(content[0].Text, "\n")
	return line
}
