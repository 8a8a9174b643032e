-- Requests to one daemon after another: each is answered exactly once, also when the
-- daemon dies before it answers, or cannot be started.

local compat = require('waza.compat')

local M = {}
local Requests = {}
Requests.__index = Requests

-- new makes an empty book of requests.
function M.new()
  return setmetatable({ waiting = {}, sent = {} }, Requests)
end

-- put keeps a request for when there is a daemon.
function Requests:put(method, params, callback)
  table.insert(self.waiting, { method = method, params = params, callback = callback })
end

-- take returns what was put, and keeps it no more.
function Requests:take()
  local list = self.waiting
  self.waiting = {}
  return list
end

-- send asks a client. It returns false when the client's process has just died;
-- callback is not called then.
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

-- refuse answers with an error, but not before whoever asked has gone on.
function M.refuse(callback, reason)
  vim.schedule(function()
    callback({ message = reason })
  end)
end

-- lose answers what was sent, and will not be answered any more.
function Requests:lose(reason)
  local sent = self.sent
  self.sent = {}
  for entry in pairs(sent) do
    M.refuse(entry.callback, reason)
  end
end

-- lose_all answers also what waits.
function Requests:lose_all(reason)
  self:lose(reason)
  for _, request in ipairs(self:take()) do
    M.refuse(request.callback, reason)
  end
end

return M
