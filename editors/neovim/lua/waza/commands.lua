-- The commands of the plugin and of code lenses.

local buffers = require('waza.buffers')
local daemons = require('waza.daemon')
local notice = require('waza.notice')
local paths = require('waza.paths')
local suites = require('waza.suites')

local M = {}

local function here()
  return vim.api.nvim_get_current_buf()
end

local function line()
  return vim.api.nvim_win_get_cursor(0)[1]
end

local function cwd_daemon()
  return daemons.get(paths.root(paths.normal(vim.fn.getcwd()) .. '/.'))
end

local function daemon_here()
  local suite = suites.of_buffer(here())
  return suite and suite.daemon or cwd_daemon(), suite
end

-- choose asks the user for one of the suites below the working directory.
local function choose(use)
  local daemon = cwd_daemon()
  daemon:request('eval.list', { directory = vim.fn.getcwd() }, function(err, result)
    if err then
      return notice.error(notice.reason(err))
    end
    if #result.evals == 0 then
      return notice.warn('there are no suites below ' .. vim.fn.getcwd())
    end
    if #result.evals == 1 then
      return use(suites.get(paths.normal(result.evals[1].path)))
    end
    vim.ui.select(result.evals, {
      prompt = 'Suite',
      format_item = function(e)
        return ('%s (%s)'):format(e.name, vim.fn.fnamemodify(e.path, ':~:.'))
      end,
    }, function(e)
      if e then
        use(suites.get(paths.normal(e.path)))
      end
    end)
  end)
end

-- with_suite calls use(suite) with the suite of this buffer, or with the user's choice.
local function with_suite(use)
  suites.find(here(), function(suite)
    if suite then
      use(suite)
    else
      choose(use)
    end
  end)
end

-- named lists the suites for an argument: a file, a directory or a glob.
local function named(argument)
  local list = {}
  for _, path in ipairs(vim.fn.glob(argument, true, true)) do
    local full = paths.normal(path):gsub('/$', '')
    if vim.fn.isdirectory(full) == 1 then
      vim.list_extend(list, paths.suites_in(full) or {})
    elseif paths.is_suite(full) then
      table.insert(list, full)
    end
  end
  return list
end

local function run(suite, options)
  require('waza.runs').start(suite, options)
end

-- :WazaRun [SUITE|GLOB]
function M.run(argument)
  if not argument or argument == '' then
    return with_suite(run)
  end
  local list = named(argument)
  for _, path in ipairs(list) do
    run(suites.get(path))
  end
  if #list > 0 then
    return
  end
  suites.find(here(), function(suite)
    if suite then
      run(suite, { tasks = { argument } })
    else
      notice.error(
        ('%s: no suite has this name, and this buffer has no suite with such tasks'):format(argument)
      )
    end
  end)
end

-- nearest calls use(suite, task) with the task at the cursor.
local function nearest(use)
  local buffer, at = here(), line()
  suites.find(buffer, function(suite)
    if not suite then
      return notice.error('this buffer belongs to no suite')
    end
    suites.load(suite, function(err)
      local task = buffers.nearest(suite, buffer, at)
      if task then
        return use(suite, task)
      end
      notice.error(err and notice.reason(err) or 'there is no task at the cursor')
    end)
  end)
end

-- :WazaRunNearest
function M.run_nearest(options)
  require('waza.runs').write_here(here())
  nearest(function(suite, task)
    run(suite, vim.tbl_extend('force', { taskId = task.id }, options or {}))
  end)
end

-- :WazaStop
function M.stop()
  if require('waza.runs').stop() == 0 then
    notice.info('nothing is running')
  end
end

-- newest calls use(daemon, run_id) with the newest run, of this buffer's suite if it has one.
local function newest(use)
  local daemon, suite = daemon_here()
  daemon:request('run.list', { path = suite and suite.path, limit = 1 }, function(err, result)
    if err then
      return notice.error(notice.reason(err))
    end
    if #result.runs == 0 then
      return notice.warn('there is no run yet; :WazaRun starts one')
    end
    use(daemon, result.runs[1].runId)
  end)
end

-- :WazaResults [RUN]
function M.results(run_id)
  local results = require('waza.results')
  if run_id and run_id ~= '' then
    return results.open(daemon_here(), run_id)
  end
  newest(results.open)
end

-- :WazaTranscript [TRIAL]
function M.transcript(trial)
  local transcript = require('waza.transcript')
  local suite = suites.of_buffer(here())
  local task = suite and buffers.nearest(suite, here(), line())
  local last = task and suite.last[task.id]
  if task and not last then
    return notice.warn(('task %s has not run yet'):format(task.id))
  end
  if not task then
    return newest(function(daemon, run_id)
      transcript.open(daemon, run_id, nil, tonumber(trial))
    end)
  end
  transcript.open(suite.daemon, last.run_id, function(id)
    return suites.base(suite, id) == task.id
  end, tonumber(trial))
end

-- :WazaRuns[!]
function M.runs(all)
  local daemon, suite = daemon_here()
  require('waza.history').open(daemon, not all and suite and suite.path or nil)
end

-- :WazaCompare [REFERENCE RUN…]
function M.compare(ids)
  local compare = require('waza.compare')
  if #ids > 0 then
    return compare.open(daemon_here(), ids)
  end
  with_suite(compare.last)
end

-- :WazaRestart
function M.restart()
  local list = daemons.all()
  if #list == 0 then
    return notice.info('no daemon is running yet')
  end
  for _, daemon in ipairs(list) do
    daemon:restart()
  end
end

local function suite_of_lens(argument)
  return suites.get(
    paths.normal(vim.startswith(argument.path, 'file:') and vim.uri_to_fname(argument.path) or argument.path)
  )
end

local function first(command)
  return (command.arguments or {})[1] or {}
end

-- of_lenses returns the language server's commands that the plugin executes itself, so
-- that their runs are shown like all others.
function M.of_lenses()
  return {
    ['waza.run'] = function(command)
      local a = first(command)
      run(suite_of_lens(a), { tasks = a.tasks })
    end,
    ['waza.debug'] = function(command)
      local a = first(command)
      require('waza.output').open()
      run(suite_of_lens(a), { tasks = a.tasks, trials = 1, workers = 1, verbose = true })
    end,
    ['waza.cancel'] = function()
      M.stop()
    end,
    ['waza.compare'] = function(command)
      local a = first(command)
      if a.base and a.run then
        return require('waza.compare').open(daemon_here(), { a.base, a.run })
      end
      require('waza.compare').last(suite_of_lens(a))
    end,
    ['waza.showRun'] = function(command)
      local a = first(command)
      local daemon = daemon_here()
      if not a.taskId then
        return require('waza.results').open(daemon, a.runId)
      end
      require('waza.transcript').open(daemon, a.runId, function(id)
        return id == a.taskId or vim.startswith(id, a.taskId .. '[')
      end)
    end,
  }
end

-- complete_suites completes paths of suites and, in a buffer of one, its tasks.
function M.complete_suites(lead)
  local list = vim.fn.getcompletion(lead, 'file')
  local suite = suites.of_buffer(here())
  for _, task in ipairs(suite and suite.tasks or {}) do
    if vim.startswith(task.id, lead) then
      table.insert(list, 1, task.id)
    end
  end
  return list
end

return M
