-- The open suites: their tasks, the lines of these, and their last results.

local compat = require('waza.compat')
local config = require('waza.config')
local daemons = require('waza.daemon')
local paths = require('waza.paths')

local M = {}

local suites = {} -- by path
local changed = {} -- listeners

-- on_change calls fn(suite) when the state of a suite changes.
function M.on_change(fn)
  table.insert(changed, fn)
end

local function notify(suite)
  for _, fn in ipairs(changed) do
    fn(suite)
  end
end

-- get returns the suite of a path, with its daemon.
function M.get(path)
  local suite = suites[path]
  if not suite then
    local root = paths.root(path)
    suite = { path = path, dir = paths.dir(path), root = root, tasks = {}, last = {}, buffers = {} }
    suites[path] = suite
  end
  suite.daemon = daemons.get(suite.root)
  return suite
end

function M.known(path)
  return suites[path]
end

function M.all()
  return suites
end

-- of_buffer returns the suite that was found for a buffer, or nil.
function M.of_buffer(buffer)
  local path = vim.b[buffer].waza_suite
  return path and M.get(path)
end

-- file_of returns the absolute path of the file that declares a task.
function M.file_of(suite, task)
  return paths.normal(suite.dir .. '/' .. task.file)
end

local function name_of(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  return name ~= '' and paths.normal(name) or nil
end

-- tasks_in lists the tasks that a buffer declares, in the order of their lines.
function M.tasks_in(suite, buffer)
  local name = name_of(buffer)
  local list = vim.tbl_filter(function(task)
    return M.file_of(suite, task) == name
  end, suite.tasks)
  table.sort(list, function(a, b)
    return a.line < b.line
  end)
  return list
end

-- base returns the suite's task for a task of a run: itself, or the one of its cell of
-- a matrix. It returns nil for what runs besides the tasks, such as baselines and
-- trigger tests.
function M.base(suite, id)
  if suite.by_id and suite.by_id[id] then
    return id
  end
  for _, task in ipairs(suite.tasks) do
    if vim.startswith(id, task.id .. '[') then
      return task.id
    end
  end
  return nil
end

local function take_tasks(suite, tasks)
  suite.tasks, suite.by_id = tasks, {}
  for _, task in ipairs(tasks) do
    suite.by_id[task.id] = task
  end
end

-- load requests the tasks of a suite. While a suite is invalid, its last tasks remain.
function M.load(suite, after)
  suite.daemon:request('task.list', { path = suite.path }, function(err, result)
    if not err then
      take_tasks(suite, result.tasks)
    end
    if after then
      after(err)
    end
    notify(suite)
  end)
end

-- The verdicts of a task in several cells are shown as one: the first in this list.
local gravest = { 'running', 'error', 'failed', 'timeout', 'needs_review', 'cancelled', 'passed', 'skipped' }

-- grave returns which of two verdicts is shown if a task has both.
function M.grave(a, b)
  for _, verdict in ipairs(gravest) do
    if a == verdict or b == verdict then
      return verdict
    end
  end
  return a or b
end

local function add(results, id, verdict, passed, ended, total)
  local r = results[id] or { passed = 0, ended = 0, total = 0 }
  r.verdict = M.grave(r.verdict, verdict)
  r.passed, r.ended, r.total = r.passed + passed, r.ended + ended, r.total + total
  results[id] = r
end

-- of_run returns the results of a run by task of the suite.
function M.of_run(suite, run)
  local results = {}
  for _, id in ipairs(run.order) do
    local task = run.tasks[id]
    local base = M.base(suite, id)
    if base and not task.role then
      local cut = run.status ~= 'running' and task.verdict == 'running'
      add(results, base, cut and 'cancelled' or task.verdict, task.passed, task.ended, task.total or task.ended)
    end
  end
  return results
end

local function newest(history, task)
  for i = #history.runs, 1, -1 do
    local result = task.runs[i]
    if type(result) == 'table' and result.verdict then
      return result, history.runs[i]
    end
  end
end

local function take_history(suite, history)
  local by_run = {}
  for _, task in ipairs(history.tasks) do
    local result, run = newest(history, task)
    local base = result and M.base(suite, task.id)
    if base then
      by_run[base] = by_run[base] or {}
      local of = by_run[base]
      if not of.run or of.run.startedAt <= run.startedAt then
        if not of.run or of.run.runId ~= run.runId then
          of.run, of.results = run, {}
        end
        local t = result.trials
        add(of.results, base, result.verdict, t.passed, t.total, t.total)
      end
    end
  end
  for base, of in pairs(by_run) do
    suite.last[base] = vim.tbl_extend('force', of.results[base], { run_id = of.run.runId })
  end
end

-- recall requests the last results of the tasks, no matter who started the run.
function M.recall(suite)
  suite.daemon:request('task.history', { path = suite.path, limit = 10 }, function(err, history)
    if not err then
      take_history(suite, history)
      notify(suite)
    end
  end)
end

-- keep stores the results of an active or ended run as the last ones.
function M.keep(suite, run)
  for id, result in pairs(M.of_run(suite, run)) do
    result.run_id = run.id
    suite.last[id] = result
  end
  notify(suite)
end

-- attach attaches the daemon of a suite to one of its buffers.
function M.attach(suite, buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) or suite.buffers[buffer] then
    return
  end
  vim.b[buffer].waza_suite = suite.path
  suite.buffers[buffer] = true
  suite.daemon:attach(buffer)
  require('waza.buffers').watch(suite, buffer)
  M.load(suite, function()
    M.recall(suite)
  end)
end

-- attached_to returns the suite that a buffer is attached to, or nil.
function M.attached_to(buffer)
  for _, suite in pairs(suites) do
    if suite.buffers[buffer] then
      return suite
    end
  end
end

-- forget_buffer removes a deleted buffer.
function M.forget_buffer(buffer)
  for _, suite in pairs(suites) do
    if suite.buffers[buffer] then
      suite.buffers[buffer] = nil
      suite.daemon:detach(buffer)
    end
  end
end

-- attached sets up the features of the language server in a buffer.
function M.attached(client, buffer)
  if config.options.omnifunc and compat.serves(client, 'completionProvider') and vim.bo[buffer].omnifunc == '' then
    vim.bo[buffer].omnifunc = 'v:lua.vim.lsp.omnifunc'
  end
  if config.options.code_lens and compat.serves(client, 'codeLensProvider') then
    vim.schedule(function()
      if vim.api.nvim_buf_is_loaded(buffer) and not compat.ended(client) then
        compat.refresh_lenses(client, buffer)
      end
    end)
  end
  if config.options.on_attach then
    config.options.on_attach(client, buffer)
  end
end

-- declares reports whether a suite's reply to task.list shows that a file belongs to
-- it: it declares tasks, or the suite cannot be read because of it.
local function declares(suite, name, err, result)
  if not err then
    for _, task in ipairs(result.tasks) do
      if M.file_of(suite, task) == name then
        return true
      end
    end
    return false
  end
  for _, d in ipairs(type(err.data) == 'table' and err.data.diagnostics or {}) do
    if d.file and paths.normal(d.file) == name then
      return true
    end
  end
  return false
end

-- find finds the suite of a buffer, attaches it, and calls found(suite), with nil if
-- no suite exists. It ignores YAML files to which no suite refers.
function M.find(buffer, found)
  found = found or function() end
  local known = M.of_buffer(buffer)
  local name = name_of(buffer)
  if known or not name or not paths.is_yaml(name) or vim.bo[buffer].buftype ~= '' then
    return found(known)
  end
  local list = paths.candidates(name)
  local special = vim.fn.fnamemodify(name, ':t:r') == 'trigger_tests'
  local function try(i)
    local path = list[i]
    if not path then
      return found(nil)
    end
    local suite = M.get(path)
    if path == name or special then
      M.attach(suite, buffer)
      return found(suite)
    end
    suite.daemon:request('task.list', { path = path }, function(err, result)
      if not declares(suite, name, err, result) then
        return try(i + 1)
      end
      M.attach(suite, buffer)
      found(suite)
    end)
  end
  try(1)
end

return M
