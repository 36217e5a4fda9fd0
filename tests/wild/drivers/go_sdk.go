// The client of github.com/modelcontextprotocol/go-sdk.
package main

import (
	"context"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type official struct {
	*mcp.ClientSession
	progressLog
}

func textOf(blocks []mcp.Content) string {
	var all []string
	for _, block := range blocks {
		if text, ok := block.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

func (o *official) tools(ctx context.Context) (names []string, err error) {
	for tool, err := range o.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func (o *official) call(ctx context.Context, name string, arguments map[string]any) (bool, string, error) {
	result, err := o.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return false, "", err
	}
	return result.IsError, textOf(result.Content), nil
}

func (o *official) progress(ctx context.Context, name string, arguments map[string]any) ([]float64, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken("count")
	_, err := o.CallTool(ctx, params)
	return o.after(5), err
}

func (o *official) read(ctx context.Context, uri string) (string, error) {
	result, err := o.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	return result.Contents[0].Text, nil
}

func (o *official) prompt(ctx context.Context, name string, arguments map[string]string) (string, error) {
	result, err := o.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	var all []mcp.Content
	for _, message := range result.Messages {
		all = append(all, message.Content)
	}
	return textOf(all), nil
}

func (o *official) answers() []string {
	return []string{"elicitation", "sampling"}
}

func elicit(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: user}, nil
}

func sample(_ context.Context, request *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	messages := request.Params.Messages
	said := model(textOf([]mcp.Content{messages[len(messages)-1].Content}))
	return &mcp.CreateMessageResult{Content: &mcp.TextContent{Text: said}, Model: "none", Role: "assistant"}, nil
}

func (o *official) close() error {
	return o.Close()
}

func main() {
	run(func(ctx context.Context, to target) (session, error) {
		it := &official{}
		client := mcp.NewClient(&mcp.Implementation{Name: "wild", Version: "1.0.0"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
				it.add(request.Params.Progress)
			},
			ElicitationHandler:   elicit,
			CreateMessageHandler: sample,
		})
		var there mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to.url}
		if to.url == "" {
			there = &mcp.CommandTransport{Command: exec.Command(to.command[0], to.command[1:]...)}
		}
		var err error
		it.ClientSession, err = client.Connect(ctx, there, nil)
		return it, err
	})
}
