-- Requests to consecutive daemons: each is answered exactly once, even if the daemon
-- dies before it answers, or cannot be started.

local compat = require('waza.compat')

local M = {}
local Requests = {}
Requests.__index = Requests

-- new creates an empty queue of requests.
function M.new()
  return setmetatable({ waiting = {}, sent = {} }, Requests)
end

-- put stores a request until a daemon is ready.
function Requests:put(method, params, callback)
  table.insert(self.waiting, { method = method, params = params, callback = callback })
end

-- take removes and returns the stored requests.
function Requests:take()
  local list = self.waiting
  self.waiting = {}
  return list
end

-- send sends a request to a client. It returns false if the client's process has just
-- died; it does not call callback then.
function Requests:send(client, method, params, callback)
  local entry = { callback = callback }
  self.sent[entry] = true
  local ok = compat.request(client, method, params, function(err, result)
    if self.sent[entry] then
      self.sent[entry] = nil
      callback(err, result)
    end
  end)
  if not ok then
    self.sent[entry] = nil
  end
  return ok
end

-- refuse answers with an error, but only after the caller has returned.
function M.refuse(callback, reason)
  vim.schedule(function()
    callback({ message = reason })
  end)
end

-- lose answers the sent requests, which will get no reply any more.
function Requests:lose(reason)
  local sent = self.sent
  self.sent = {}
  for entry in pairs(sent) do
    M.refuse(entry.callback, reason)
  end
end

-- lose_all also answers the stored requests.
function Requests:lose_all(reason)
  self:lose(reason)
  for _, request in ipairs(self:take()) do
    M.refuse(request.callback, reason)
  end
end

return M
