-- One daemon per root directory: `waza lsp`, as a client of vim.lsp. Its connection
-- carries the language server and waza's own methods. A daemon that dies restarts,
-- after longer pauses each time, and sends the missed events of its runs.

local catchup = require('waza.catchup')
local compat = require('waza.compat')
local config = require('waza.config')
local model = require('waza.model')
local notice = require('waza.notice')
local requests = require('waza.requests')

local M = {}
local Daemon = {}
Daemon.__index = Daemon

-- Methods that the plugin needs.
local needed = { 'eval.run', 'task.run', 'run.cancel', 'run.subscribe', 'run.resume', 'run.trial', 'task.history' }

-- A daemon that has lived this long, in ms, is healthy.
local healthy = 60000

local daemons = {} -- by root
local leaving = false
local listeners = {}

-- listen calls fn(daemon, run, method, params) for every change of a run.
function M.listen(fn)
  table.insert(listeners, fn)
end

-- all lists the daemons, in whatever state.
function M.all()
  local list = vim.tbl_values(daemons)
  table.sort(list, function(a, b)
    return a.root < b.root
  end)
  return list
end

-- get returns the daemon of a root directory, and starts it if needed.
function M.get(root)
  local daemon = daemons[root]
  if not daemon then
    daemon = setmetatable({
      root = root,
      state = 'down', -- down, starting, ready, waiting (to restart), stopping
      deaths = 0,
      model = model.new(),
      buffers = {},
      requests = requests.new(),
    }, Daemon)
    daemons[root] = daemon
  end
  if daemon.state == 'down' and not daemon.given_up then
    daemon:start()
  end
  return daemon
end

-- leave reports that Neovim ends: nothing is started any more.
function M.leave()
  leaving = true
  for _, daemon in pairs(daemons) do
    daemon:halt_timer()
  end
end

function Daemon:client()
  return self.client_id and vim.lsp.get_client_by_id(self.client_id)
end

local function command()
  local cmd = { config.options.path, 'lsp' }
  vim.list_extend(cmd, config.options.args)
  return cmd
end

function Daemon:handlers()
  local handlers = {}
  for _, method in ipairs({ 'eval.progress', 'eval.log', 'eval.complete' }) do
    handlers[method] = function(_, params)
      self:heard(method, params)
    end
  end
  handlers['eval.changed'] = function() end -- for a watch of another client of this connection
  handlers['workspace/codeLens/refresh'] = function()
    self:refresh_lenses()
    return vim.NIL
  end
  return handlers
end

local function capabilities()
  local c = vim.lsp.protocol.make_client_capabilities()
  c.workspace = c.workspace or {}
  c.workspace.codeLens = { refreshSupport = true }
  return c
end

function Daemon:start()
  if leaving then
    return
  end
  if vim.fn.executable(config.options.path) ~= 1 then
    self:fail(
      ('%q does not exist or is not executable. Install waza, or set its path: require("waza").setup({ path = … })'):format(
        config.options.path
      )
    )
    return
  end
  self.state = 'starting'
  self.client_id = compat.start_client({
    name = 'waza',
    cmd = command(),
    cmd_env = config.options.env,
    cmd_cwd = self.root,
    root_dir = self.root,
    capabilities = capabilities(),
    handlers = self:handlers(),
    commands = require('waza.commands').of_lenses(),
    on_init = function(client, result)
      self:ready(client, result)
    end,
    on_exit = function(code, signal)
      vim.schedule(function()
        self:exited(code, signal)
      end)
    end,
    on_attach = function(client, buffer)
      require('waza.suites').attached(client, buffer)
    end,
  })
  if not self.client_id then
    self:fail(('%q could not be started'):format(config.options.path))
    return
  end
  self:attach_all()
end

-- fail gives up until the user asks again.
function Daemon:fail(reason)
  self.state, self.given_up, self.reason = 'down', true, reason
  notice.once(reason)
  self.requests:lose_all(reason)
end

local function missing(client)
  local offered = {}
  for _, name in ipairs(client.server_capabilities.methods or {}) do
    offered[name] = true
  end
  return vim.tbl_filter(function(name)
    return not offered[name]
  end, needed)
end

function Daemon:ready(client, result)
  self.version = type(result.serverInfo) == 'table' and result.serverInfo.version or '?'
  local lacks = missing(client)
  if #lacks > 0 then
    self.state = 'stopping'
    self:fail(
      ('%s is too old (%s): it lacks %s. Install a newer waza, then :WazaRestart'):format(
        config.options.path,
        self.version,
        table.concat(lacks, ', ')
      )
    )
    compat.stop(client, true)
    return
  end
  local missed = self.model:unfinished()
  vim.schedule(function() -- vim.lsp registers the client only after this
    if self.client_id == client.id then
      self.state, self.since = 'ready', vim.loop.now()
      catchup.subscribe(self, missed)
      for _, request in ipairs(self.requests:take()) do
        self:request(request.method, request.params, request.callback)
      end
    end
  end)
end

-- request sends a request as soon as the daemon is ready. callback(err, result) is
-- called exactly once, even if the daemon dies or cannot be started.
function Daemon:request(method, params, callback)
  callback = callback or function() end
  if self.state == 'starting' or self.state == 'waiting' then
    return self.requests:put(method, params, callback)
  end
  local client = self.state == 'ready' and self:client()
  if not client then
    return requests.refuse(callback, self.reason or 'the daemon is not running; :WazaRestart starts it')
  end
  if not self.requests:send(client, method, params, callback) then
    self.state = 'waiting' -- on_exit will report the reason
    self.requests:put(method, params, callback)
  end
end

function Daemon:exited(code, signal)
  local was, started = self.state, self.since
  self.client_id, self.since = nil, nil
  self.requests:lose('the daemon ended before it answered')
  if leaving or self.given_up then
    self.state = 'down'
    return
  end
  if was == 'stopping' then
    self.state = 'down'
    local after = self.after_stop
    self.after_stop = nil
    if after then
      after()
    end
    return
  end
  if was == 'starting' and signal == 0 then
    self:fail(
      ('`%s` ended at once, with code %d: it may be too old for editors. See :checkhealth waza'):format(
        table.concat(command(), ' '),
        code
      )
    )
    return
  end
  if started and vim.loop.now() - started > healthy then
    self.deaths = 0
  end
  self:restart_later()
end

function Daemon:restart_later()
  local r = config.options.restart
  self.deaths = self.deaths + 1
  if self.deaths > r.attempts then
    self:fail(('the daemon died %d times in a row; :WazaRestart restarts it'):format(self.deaths))
    return
  end
  local delay = math.min(r.delay * 2 ^ (self.deaths - 1), r.max_delay)
  self.state = 'waiting'
  notice.warn(('the daemon died; it restarts in %.1f s'):format(delay / 1000))
  self:halt_timer()
  self.timer = vim.loop.new_timer()
  self.timer:start(
    delay,
    0,
    vim.schedule_wrap(function()
      self:halt_timer()
      if self.state == 'waiting' then
        self:start()
      end
    end)
  )
end

function Daemon:halt_timer()
  if self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

-- stop ends the daemon and its runs, and then calls after(). It kills a daemon that
-- takes too long.
function Daemon:stop(after)
  self:halt_timer()
  local client = self:client()
  if not client then
    self.state = 'down'
    self.requests:lose_all('the daemon was stopped')
    if after then
      after()
    end
    return
  end
  self.state, self.after_stop = 'stopping', after
  self.requests:lose_all('the daemon was stopped')
  compat.stop(client, false)
  vim.defer_fn(function()
    if not compat.ended(client) then
      compat.stop(client, true)
    end
  end, 3000)
end

-- restart stops the daemon and starts it again, even if it died often.
function Daemon:restart()
  notice.forget()
  self:stop(function()
    self.given_up, self.reason, self.deaths = nil, nil, 0
    self:start()
  end)
end

-- attach makes the daemon and its successors serve a buffer.
function Daemon:attach(buffer)
  self.buffers[buffer] = true
  if self.client_id then
    compat.attach(buffer, self.client_id)
  end
end

function Daemon:detach(buffer)
  self.buffers[buffer] = nil
end

function Daemon:attach_all()
  for buffer in pairs(self.buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      compat.attach(buffer, self.client_id)
    else
      self.buffers[buffer] = nil
    end
  end
end

function Daemon:refresh_lenses()
  local client = self:client()
  if not config.options.code_lens or not compat.serves(client, 'codeLensProvider') then
    return
  end
  for buffer in pairs(self.buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      compat.refresh_lenses(client, buffer)
    end
  end
end

-- heard applies a notification to its run and passes it on.
function Daemon:heard(method, params)
  local run = self.model:apply(method, params)
  if not run then
    return
  end
  for _, listener in ipairs(listeners) do
    listener(self, run, method, params)
  end
  if method == 'eval.complete' and run.status == 'interrupted' then
    catchup.resume(self, run)
  end
end

return M
