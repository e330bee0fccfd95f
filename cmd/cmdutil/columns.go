package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// columns is a table that the user makes: a title and a path for each column.
type columns struct {
	titles []string
	paths  []*jsonPath
}

// none is what kubectl prints where there is no value.
const none = "<none>"

// parseColumns reads TITLE:PATH,TITLE:PATH.
func parseColumns(text string) (expression, error) {
	c := &columns{}
	for part := range strings.SplitSeq(text, ",") {
		title, path, found := strings.Cut(part, ":")
		if title = strings.TrimSpace(title); !found || title == "" {
			return nil, fmt.Errorf("%q is no column; write each as TITLE:PATH, such as NAME:.ref.name", part)
		}
		if err := c.add(title, path); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parseColumnsFile reads a file with a line of titles, and below it the paths.
func parseColumnsFile(text string) (expression, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 2 {
		return nil, fmt.Errorf("the file has %d lines; write one of titles, and below it one of paths", len(lines))
	}
	titles, paths := strings.Fields(lines[0]), strings.Fields(lines[1])
	if len(titles) != len(paths) || len(titles) == 0 {
		return nil, fmt.Errorf("the file has %d titles and %d paths; write as many paths as titles", len(titles), len(paths))
	}
	c := &columns{}
	for i, title := range titles {
		if err := c.add(title, paths[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *columns) add(title, path string) error {
	parsed, err := parsePath(path)
	if err != nil {
		return fmt.Errorf("column %s: %w", title, err)
	}
	c.titles, c.paths = append(c.titles, title), append(c.paths, parsed)
	return nil
}

// print prints a row for each element of a list, or one for another value.
func (c *columns) print(out io.Writer, data any, shape reflect.Type, noHeaders bool) error {
	table := &Table{Header: c.titles}
	if noHeaders {
		table.Header = nil
	}
	items, list := data.([]any)
	if list {
		shape = shape.Elem()
	} else {
		items = []any{data}
	}
	for _, item := range items {
		row := make([]string, len(c.paths))
		for i, path := range c.paths {
			found, err := path.find(item, shape)
			if err != nil {
				return err
			}
			texts := make([]string, len(found))
			for j, value := range found {
				texts[j] = textOf(value)
			}
			if row[i] = strings.Join(texts, ","); len(found) == 0 {
				row[i] = none
			}
		}
		table.Add(row...)
	}
	return table.Print(out)
}

// textOf is a value of generic in a cell.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any, map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return none // it came from JSON
		}
		return string(text)
	}
	return fmt.Sprint(value)
}
