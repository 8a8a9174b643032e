-- Replays the recorded dialogues of all clients below the transport: the case is the
-- server, and checks the state of the runs in the plugin.
local t = require('support')

-- Adds the methods that a recorded server of the language protocol lacks.
local function offered(result)
  local known = vim.deepcopy(result or {})
  known.capabilities = vim.tbl_extend('force', known.capabilities or {}, {
    methods = { 'eval.run', 'task.run', 'run.cancel', 'run.subscribe', 'run.resume', 'run.trial', 'task.history' },
  })
  return known
end

-- A Stage replaces the transport: requests of the plugin wait in sent, in order.
local Stage = {}
Stage.__index = Stage

function Stage.install()
  local stage = setmetatable({ sent = {}, asked = {}, started = 0, launched = 0 }, Stage)
  local compat = require('waza.compat')
  compat.start_client = function(config)
    stage.started = stage.started + 1
    stage.config = config
    return stage.started
  end
  vim.lsp.get_client_by_id = function(id) -- luacheck: ignore
    return id == stage.started and stage.client or nil
  end
  compat.request = function(_, method, params, handler)
    if method == 'task.history' then
      return true, 0 -- requests for the marks of resumed runs are not in the recordings
    end
    table.insert(stage.sent, { method = method, params = params, handler = handler })
    return true, #stage.sent
  end
  return stage
end

function Stage:client_said(line)
  if line.method == 'initialize' then
    local nth = self.launched + 1
    t.wait('the daemon to be started', function()
      return self.started >= nth
    end)
    self.launched, self.initialize = nth, line.id
    return
  end
  t.wait('the request ' .. vim.inspect(line), function()
    return #self.sent > 0
  end)
  local request = table.remove(self.sent, 1)
  t.same(line.method, request.method)
  for name, value in pairs(line.params or {}) do
    t.same(value, request.params[name], line.method .. ': ' .. name)
  end
  self.asked[line.id] = request
end

function Stage:server_said(line)
  if not line.id then
    local handler = self.config.handlers[line.method]
    if handler then -- vim.lsp ignores notifications without a handler
      handler(nil, line.params, { method = line.method })
    end
  elseif line.id == self.initialize then
    self.client = { id = self.started, server_capabilities = offered(line.result).capabilities }
    self.config.on_init(self.client, offered(line.result))
  else
    self.failure = line.error
    self.asked[line.id].handler(line.error, line.result)
  end
end

function Stage:die()
  self.client = nil
  self.config.on_exit(0, 9)
end

local function task_of(task)
  local trials = {}
  for number, verdict in pairs(task.trials) do
    trials[tostring(number)] = verdict
  end
  return { name = task.name, verdict = task.verdict, passed = task.passed, trials = trials }
end

local function run_of(run)
  local tasks = {}
  for id, task in pairs(run.tasks) do
    tasks[id] = task_of(task)
  end
  return {
    status = run.status,
    seq = run.seq,
    log = run.logs,
    lastLog = run.last_log,
    error = run.error,
    tasks = tasks,
  }
end

-- known returns the plugin's state in the format of the recordings. It excludes runs
-- that this Neovim has started but received no events of.
local function known(daemon)
  local runs = {}
  for id, run in pairs(daemon.model.runs) do
    if run.seq > 0 or run.status ~= 'running' then
      runs[id] = run_of(run)
    end
  end
  return runs
end

local function failure_of(err)
  if not err then
    return nil
  end
  local diagnostics = err.data and err.data.diagnostics
  return {
    code = err.code,
    message = err.message,
    diagnostics = diagnostics and vim.tbl_map(function(d)
      return { file = d.file, line = d.line, severity = d.severity, code = d.code }
    end, diagnostics),
  }
end

local suite_path = '/workspace/eval.yaml'

local function call(stage, daemon, line)
  stage.failure = nil
  if line['do'] == 'run' then
    local suite = require('waza.suites').get(suite_path)
    local options = vim.deepcopy(line)
    options['do'], options.path = nil, nil
    require('waza.runs').start(suite, options)
  elseif line['do'] == 'cancel' then
    daemon:request('run.cancel', { runId = line.run })
  elseif line['do'] == 'resume' then
    require('waza.history').resume(daemon, { runId = line.run, suite = { path = suite_path } })
  elseif line['do'] == 'subscribe' then
    daemon:request('run.subscribe', { runId = line.run, fromSeq = line.from })
  else
    error('the recording has an unknown call: ' .. vim.inspect(line))
  end
end

local function expect(stage, daemon, line)
  if line.runs then
    local deadline = vim.loop.now() + 5000
    while not vim.deep_equal(line.runs, known(daemon)) and vim.loop.now() < deadline do
      vim.wait(10)
    end
    t.same(line.runs, known(daemon), 'the state of the runs')
  end
  t.same(line.error, failure_of(stage.failure), 'how the latest request ended')
end

-- fresh resets the plugin, as in a new Neovim.
local function fresh()
  for name in pairs(package.loaded) do
    if vim.startswith(name, 'waza') then
      package.loaded[name] = nil
    end
  end
  t.setup({ quickfix = false, restart = { delay = 1, max_delay = 1, attempts = 5 } })
end

local function replay(path)
  fresh()
  local stage = Stage.install()
  local daemon = require('waza.daemon').get('/workspace')
  local at = 0
  for text in io.lines(path) do
    at = at + 1
    local line = vim.json.decode(text, { luanil = { object = true } })
    local ok, err = pcall(function()
      if line.call then
        call(stage, daemon, line.call)
      elseif line.client then
        stage:client_said(line.client)
      elseif line.server then
        stage:server_said(line.server)
      elseif line.die then
        stage:die()
      elseif line.expect then
        expect(stage, daemon, line.expect)
      end
    end)
    if not ok then
      error(('%s:%d: %s'):format(path, at, err), 0)
    end
  end
  t.same({}, stage.sent, path .. ': the client sent more than was recorded')
  require('waza.daemon').leave()
end

local directory = vim.env.DIALOGUES or (vim.env.PLUGIN .. '/../dialogues')
local recordings = vim.fn.glob(directory .. '/*.jsonl', true, true)
t.is(#recordings >= 15, 'there are dialogues in ' .. directory)
for _, path in ipairs(recordings) do
  replay(path)
end
