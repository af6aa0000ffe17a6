-- wrk -s requests.lua URL -- FILE: random paths from a file
local requests, n = {}, 0
function init(args)
  math.randomseed(os.time())
  for path in io.lines(args[1]) do n = n + 1; requests[n] = wrk.format("GET", path) end
end
function request() return requests[math.random(n)] end
