module zot-rpc

go 1.21
