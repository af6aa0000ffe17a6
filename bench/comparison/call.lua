-- wrk -s call.lua URL -- FILE: one POST to the tool server; the file has headers, an empty line and the body
local call
function init(args)
  local headers, body, in_body = {}, {}, false
  for line in io.lines(args[1]) do
    local name, value = line:match("^([^:]+): (.*)$")
    if in_body then body[#body + 1] = line
    elseif line == "" then in_body = true
    else headers[name] = value end
  end
  call = wrk.format("POST", "/api/mcp", headers, table.concat(body, "\n"))
end
function request() return call end
