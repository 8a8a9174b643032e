-- Runs of this Neovim: starting, stopping, and what follows from their events.

local config = require('waza.config')
local daemons = require('waza.daemon')
local figures = require('waza.figures')
local model = require('waza.model')
local notice = require('waza.notice')
local output = require('waza.output')
local paths = require('waza.paths')
local suites = require('waza.suites')

local M = {}

local latest -- the run that began last
local suite_of = {} -- by run id

function M.latest()
  return latest
end

-- suite is that of a run of this Neovim, else nil.
function M.suite(run_id)
  return suite_of[run_id]
end

-- active lists the runs that go on, over all daemons.
function M.active()
  local list = {}
  for _, daemon in ipairs(daemons.all()) do
    for _, run in ipairs(daemon.model:unfinished()) do
      table.insert(list, { daemon = daemon, run = run })
    end
  end
  return list
end

local function warn_of(diagnostics)
  for _, d in ipairs(diagnostics or {}) do
    output.write(('%s: %s'):format(d.severity, d.message))
  end
end

local function started(suite, result)
  local run = suite.daemon.model:ensure(result.runId)
  run.own, run.suite_path = true, suite.path
  suite_of[run.id], latest = suite, run
  output.write(('── %s · run %s ──'):format(suite.path, run.id))
  warn_of(result.diagnostics)
  return run
end

-- adopt follows a run of the past that was taken up again.
function M.adopt(daemon, info)
  local run = daemon.model:ensure(info.runId)
  local suite = suites.get(paths.normal(info.suite.path))
  run.status, run.own, run.adopted, run.suite_path = 'running', true, true, suite.path
  suite_of[run.id], latest = suite, run
  output.write(('── %s · run %s ──'):format(suite.path, run.id))
end

local function refused(suite, err)
  notice.error(('%s cannot be run: %s'):format(vim.fn.fnamemodify(suite.path, ':~:.'), notice.reason(err)))
  local findings = type(err.data) == 'table' and err.data.diagnostics
  if findings and config.options.quickfix then
    require('waza.quickfix').findings(suite, findings)
  end
end

-- start runs a suite or, with options.taskId or tasks, some of its tasks. Other options are
-- parameters of eval.run. after(err, run) is called when the run has begun, or not.
-- Changed buffers of the suite are not run: the daemon reads files, so they are
-- written first.
function M.start(suite, options, after)
  local params = vim.tbl_extend('force', { path = suite.path }, options or {})
  M.write(suite)
  local method = (params.tasks or params.taskId) and 'task.run' or 'eval.run'
  suite.daemon:request(method, params, function(err, result)
    if err then
      refused(suite, err)
    end
    local run = not err and started(suite, result) or nil
    if after then
      after(err, run)
    end
  end)
end

-- write writes the buffers of a suite that were changed.
function M.write(suite)
  for buffer in pairs(suite.buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      M.write_here(buffer)
    end
  end
end

-- write_here writes a buffer that was changed, for the daemon reads files.
function M.write_here(buffer)
  if vim.bo[buffer].modified and vim.bo[buffer].buftype == '' then
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd('silent update')
    end)
  end
end

-- stop cancels every run of this Neovim that goes on. It returns how many there are.
function M.stop()
  local active = M.active()
  for _, a in ipairs(active) do
    a.daemon:request('run.cancel', { runId = a.run.id }, function(err)
      if err then
        notice.error(('run %s cannot be cancelled: %s'):format(a.run.id, notice.reason(err)))
      end
    end)
  end
  return #active
end

local function counts(run)
  local s = run.summary
  if not s then
    local t = model.tally(run)
    return ('%d of %d trials ended, %d passed'):format(t.ended, t.total, t.passed)
  end
  local words = { ('%d/%d tasks passed'):format(s.passed, s.total) }
  for _, kind in ipairs({ 'failed', 'errors', 'timeouts', 'cancelled', 'skipped', 'needsReview' }) do
    if (s[kind] or 0) > 0 then
      local word = kind == 'needsReview' and 'wait for review' or kind
      table.insert(words, ('%d %s'):format(s[kind], word))
    end
  end
  return table.concat(words, ', ')
end

local function ended(suite, run)
  local name = vim.fn.fnamemodify(suite.path, ':~:.')
  local text = ('%s %s: %s'):format(name, run.status, counts(run))
  if run.error then
    text = text .. ': ' .. run.error
  end
  output.write(text)
  if run.status == 'interrupted' then
    return -- its daemon says what becomes of it
  end
  local s = run.summary
  local clean = run.status == 'completed' and s and s.passed + (s.skipped or 0) == s.total
  if clean then
    notice.info(text)
  else
    notice.warn(text)
  end
  if config.options.quickfix then
    require('waza.quickfix').failures(suite, run)
  end
end

local function logged(params)
  local task = params.taskId and ('[' .. params.taskId .. '] ') or ''
  local level = params.level ~= 'info' and params.level .. ': ' or ''
  output.write(task .. level .. params.message)
end

local function told(params)
  if params.event == 'trial_complete' then
    local score = params.score and ' (score ' .. figures.score(params.score) .. ')' or ''
    local cached = params.cached and ', taken over' or ''
    output.write(
      ('[%s] trial %d/%d %s%s%s'):format(
        params.taskId,
        params.trialNum,
        params.totalTrials or params.trialNum,
        params.status,
        score,
        cached
      )
    )
  elseif params.event == 'run_resumed' then
    output.write(('the run is taken up again; %d trials are kept'):format(params.keptTrials or 0))
  end
end

local fresh = {} -- runs of which something was heard, by suite

local function keep_fresh()
  local list = fresh
  fresh = {}
  for suite, run in pairs(list) do
    suites.keep(suite, run)
  end
end

-- keep_soon sums up a run for its suite: many events make one sum.
local function keep_soon(suite, run)
  if next(fresh) == nil then
    vim.defer_fn(keep_fresh, 30)
  end
  fresh[suite] = run
end

local heard = {
  ['eval.log'] = function(_, _, params)
    logged(params)
  end,
  ['eval.progress'] = function(suite, run, params)
    told(params)
    keep_soon(suite, run)
  end,
  ['eval.complete'] = function(suite, run)
    fresh[suite] = nil
    suites.keep(suite, run)
    ended(suite, run)
    if run.adopted then
      suites.recall(suite) -- what happened before was not heard
    end
    suite.daemon:refresh_lenses()
  end,
}

daemons.listen(function(_, run, method, params)
  local suite = suite_of[run.id]
  if suite then
    heard[method](suite, run, params)
  end
end)

return M
