// The client of github.com/mark3labs/mcp-go.
package main

import (
	"context"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

type third struct {
	*client.Client
	progressLog
}

func textOf[T any](blocks []T) string {
	var all []string
	for _, block := range blocks {
		all = append(all, mcp.GetTextFromContent(any(block)))
	}
	return strings.Join(all, "\n")
}

func (t *third) tools(ctx context.Context) (names []string, err error) {
	result, err := t.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (t *third) ask(ctx context.Context, params mcp.CallToolParams) (bool, string, error) {
	result, err := t.CallTool(ctx, mcp.CallToolRequest{Params: params})
	if err != nil {
		return false, "", err
	}
	return result.IsError, textOf(result.Content), nil
}

func (t *third) call(ctx context.Context, name string, arguments map[string]any) (bool, string, error) {
	return t.ask(ctx, mcp.CallToolParams{Name: name, Arguments: arguments})
}

func (t *third) progress(ctx context.Context, name string, arguments map[string]any) ([]float64, error) {
	meta := &mcp.Meta{ProgressToken: "count"}
	_, _, err := t.ask(ctx, mcp.CallToolParams{Name: name, Arguments: arguments, Meta: meta})
	return t.after(5), err
}

func (t *third) read(ctx context.Context, uri string) (string, error) {
	result, err := t.ReadResource(ctx, mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
	if err != nil {
		return "", err
	}
	text, _ := mcp.AsTextResourceContents(result.Contents[0])
	return text.Text, nil
}

func (t *third) prompt(ctx context.Context, name string, arguments map[string]string) (string, error) {
	params := mcp.GetPromptParams{Name: name, Arguments: arguments}
	result, err := t.GetPrompt(ctx, mcp.GetPromptRequest{Params: params})
	if err != nil {
		return "", err
	}
	var all []mcp.Content
	for _, message := range result.Messages {
		all = append(all, message.Content)
	}
	return textOf(all), nil
}

func (t *third) answers() []string {
	return []string{"elicitation", "sampling"}
}

// person answers for the client's user and its model.
type person struct{}

func (person) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	response := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: user}
	return &mcp.ElicitationResult{ElicitationResponse: response}, nil
}

func (person) CreateMessage(_ context.Context, request mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	last := request.Messages[len(request.Messages)-1]
	said := mcp.NewTextContent(model(textOf([]any{last.Content})))
	message := mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: said}
	return &mcp.CreateMessageResult{SamplingMessage: message, Model: "none"}, nil
}

func (t *third) close() error {
	return t.Close()
}

func transportTo(to target) (transport.Interface, error) {
	if to.url == "" {
		return transport.NewStdio(to.command[0], os.Environ(), to.command[1:]...), nil
	}
	return transport.NewStreamableHTTP(to.url)
}

func main() {
	run(func(ctx context.Context, to target) (session, error) {
		there, err := transportTo(to)
		if err != nil {
			return nil, err
		}
		answers := []client.ClientOption{client.WithElicitationHandler(person{}), client.WithSamplingHandler(person{})}
		it := &third{Client: client.NewClient(there, answers...)}
		it.OnNotification(func(notification mcp.JSONRPCNotification) {
			if progress, ok := notification.Params.AdditionalFields["progress"].(float64); ok {
				it.add(progress)
			}
		})
		if err := it.Start(ctx); err != nil {
			return nil, err
		}
		params := mcp.InitializeParams{
			ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION,
			ClientInfo:      mcp.Implementation{Name: "wild", Version: "1.0.0"},
		}
		_, err = it.Initialize(ctx, mcp.InitializeRequest{Params: params})
		return it, err
	})
}
