module github.com/meshctl/meshctl/demo/nodeimage/get

go 1.26.0
