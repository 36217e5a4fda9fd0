// What every client is asked, in the same words: see README.md. A driver says how its client does each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	limit = 40 * time.Second
	text  = "grüße 🦄 \" \\ \n\t </script>"
)

// errSkip: this client has no way to do that.
var errSkip = errors.New("no way to do that")

// session is a connection.
type session interface {
	tools(ctx context.Context) ([]string, error)
	// call gives whether it is an error, and the text.
	call(ctx context.Context, name string, arguments map[string]any) (bool, string, error)
	progress(ctx context.Context, name string, arguments map[string]any) ([]float64, error)
	read(ctx context.Context, uri string) (string, error)
	prompt(ctx context.Context, name string, arguments map[string]string) (string, error)
	// answers gives the questions of servers that it answers, `elicitation` with user and `sampling` with model.
	answers() []string
	close() error
}

// user is the answer of the client's user to a form.
var user = map[string]any{"username": "ada", "email": "ada@example.com"}

// model is the answer of the client's model.
func model(text string) string {
	return "heard " + text
}

// progressLog has what a handler of all notifications has heard, which may come a moment after the result.
type progressLog struct {
	mu    sync.Mutex
	heard []float64
}

func (l *progressLog) add(progress float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, progress)
}

func (l *progressLog) after(wanted int) []float64 {
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		heard := slices.Clone(l.heard)
		l.mu.Unlock()
		if len(heard) >= wanted || time.Now().After(end) {
			return heard
		}
	}
}

// target is where the server is: a URL, or a command.
type target struct {
	url     string
	command []string
}

func (t *target) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &t.url) == nil {
		return nil
	}
	return json.Unmarshal(data, &t.command)
}

func say(check string, ok *bool, note string) {
	line, _ := json.Marshal(map[string]any{"check": check, "ok": ok, "note": note})
	fmt.Println(string(line))
}

func check(name string, body func(ctx context.Context) (string, error)) bool {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	type end struct {
		note string
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		note, err := body(ctx)
		ended <- end{note, err}
	}()
	var got end
	select {
	case got = <-ended:
	case <-time.After(limit + 5*time.Second):
		got.err = errors.New("no end")
	}
	if errors.Is(got.err, errSkip) {
		say(name, nil, "")
		return true
	}
	ok := got.err == nil
	if !ok {
		got.note = fmt.Sprintf("%.400s", got.err.Error())
	}
	say(name, &ok, got.note)
	return ok
}

func expect(ok bool, said any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("got %.400s", fmt.Sprintf("%#v", said))
}

func expectCall(ctx context.Context, it session, name string, arguments map[string]any, failed bool, parts ...string) error {
	wrong, said, err := it.call(ctx, name, arguments)
	if err != nil {
		return err
	}
	has := slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(said, part) })
	return expect(wrong == failed && has, said)
}

func realInput(ctx context.Context, it session) error {
	quoted, _ := json.Marshal(text)
	return errors.Join(
		expectCall(ctx, it, "add", map[string]any{"a": 2, "b": 40}, false, "42"),
		expectCall(ctx, it, "echo", map[string]any{"text": text}, false, text, strings.Trim(string(quoted), `"`)),
	)
}

type counts struct{ cancelled, running int }

var (
	blank = regexp.MustCompile(`[\s\\]`)
	count = regexp.MustCompile(`"(cancelled|running)":(\d+)`)
)

func slowCalls(ctx context.Context, it session) (counts, error) {
	wrong, said, err := it.call(ctx, "test_metrics", map[string]any{})
	if err != nil || wrong {
		return counts{}, errors.Join(err, expect(!wrong, said))
	}
	var got counts
	for _, found := range count.FindAllStringSubmatch(blank.ReplaceAllString(said, ""), -1) {
		n, _ := strconv.Atoi(found[2])
		if found[1] == "running" {
			got.running = n
		} else {
			got.cancelled = n
		}
	}
	return got, nil
}

func cancelled(ctx context.Context, it session) (string, error) {
	before, err := slowCalls(ctx, it)
	if err != nil {
		return "", err
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = it.call(inner, "slow", map[string]any{"ms": 20_000})
	}()
	// Each question is a round to the server, so nothing spins.
	for end := time.Now().Add(10 * time.Second); ; {
		now, err := slowCalls(ctx, it)
		if err != nil {
			return "", err
		}
		if now.running > before.running {
			break
		}
		if time.Now().After(end) {
			return "each call has a server of its own", nil
		}
	}
	stop()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		return "", errors.New("the cancelled call goes on")
	}
	heard := false
	for end := time.Now().Add(3 * time.Second); !heard && time.Now().Before(end); {
		now, err := slowCalls(ctx, it)
		if err != nil {
			return "", err
		}
		heard = now.cancelled > before.cancelled
	}
	if heard {
		return "", realInput(ctx, it)
	}
	return "the client does not tell the server", realInput(ctx, it)
}

func many(ctx context.Context, it session) error {
	var all sync.WaitGroup
	wrong := make([]error, 50)
	for n := range wrong {
		all.Go(func() {
			wrong[n] = expectCall(ctx, it, "add", map[string]any{"a": n, "b": 1000}, false, strconv.Itoa(n+1000))
		})
	}
	all.Wait()
	return errors.Join(wrong...)
}

func progressed(ctx context.Context, it session) (string, error) {
	heard, err := it.progress(ctx, "count", map[string]any{"to": 5})
	if err != nil {
		return "", err
	}
	for at, n := range heard {
		if n != float64(at+1) {
			return "", expect(false, heard)
		}
	}
	if len(heard) == 5 {
		return "", nil
	}
	return "the client drops a report that arrives with the result", expect(len(heard) > 0, heard)
}

// question has the server ask the client.
func question(ctx context.Context, it session, what, name, answer string, arguments map[string]any) error {
	if !slices.Contains(it.answers(), what) {
		return errSkip
	}
	return expectCall(ctx, it, name, arguments, false, answer)
}

func again(ctx context.Context, it session) error {
	return expectCall(ctx, it, "add", map[string]any{"a": 20, "b": 3}, false, "23")
}

// run plays the plan of the last argument.
func run(connect func(ctx context.Context, to target) (session, error)) {
	var plan struct {
		Target  target
		Without []string
	}
	if err := json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &plan); err != nil {
		panic(err)
	}
	var it session
	opened := check("connect", func(context.Context) (note string, err error) {
		it, err = connect(context.Background(), plan.Target)
		return "", err
	})
	if !opened {
		return
	}
	checks := []struct {
		name string
		body func(ctx context.Context) (string, error)
	}{
		{"list", func(ctx context.Context) (string, error) {
			names, err := it.tools(ctx)
			return fmt.Sprintf("%d tools", len(names)), errors.Join(err, expect(slices.Contains(names, "add"), names))
		}},
		{"call", func(ctx context.Context) (string, error) { return "", realInput(ctx, it) }},
		{"tool error", func(ctx context.Context) (string, error) {
			return "", expectCall(ctx, it, "fail", map[string]any{"kind": "tool"}, true, "the tool says no")
		}},
		{"50 at once", func(ctx context.Context) (string, error) { return "", many(ctx, it) }},
		{"cancel", func(ctx context.Context) (string, error) { return cancelled(ctx, it) }},
		{"progress", func(ctx context.Context) (string, error) { return progressed(ctx, it) }},
		{"resource", func(ctx context.Context) (string, error) {
			said, err := it.read(ctx, "test://static-text")
			return "", errors.Join(err, expect(err != nil || strings.Contains(strings.ToLower(said), "static text"), said))
		}},
		{"prompt", func(ctx context.Context) (string, error) {
			said, err := it.prompt(ctx, "test_prompt_with_arguments", map[string]string{"arg1": "hello", "arg2": "world"})
			has := strings.Contains(said, "hello") && strings.Contains(said, "world")
			return "", errors.Join(err, expect(err != nil || has, said))
		}},
		{"elicitation", func(ctx context.Context) (string, error) {
			arguments := map[string]any{"message": "Who is there?"}
			return "", question(ctx, it, "elicitation", "test_elicitation", "ada@example.com", arguments)
		}},
		{"sampling", func(ctx context.Context) (string, error) {
			arguments := map[string]any{"prompt": "a question"}
			return "", question(ctx, it, "sampling", "test_sampling", model("a question"), arguments)
		}},
	}
	for _, one := range checks {
		if !slices.Contains(plan.Without, one.name) {
			check(one.name, one.body)
		}
	}
	if plan.Target.url != "" {
		fmt.Println(`{"ask": "restart"}`)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		check("restart", func(ctx context.Context) (string, error) {
			soon, stop := context.WithTimeout(ctx, limit/2)
			defer stop()
			if again(soon, it) == nil {
				return "", nil
			}
			_ = it.close()
			fresh, err := connect(context.Background(), plan.Target)
			if err != nil {
				return "", err
			}
			it = fresh
			return "with a new connection", again(ctx, it)
		})
	}
	check("close", func(context.Context) (string, error) { return "", it.close() })
}
