-- The quickfix list: failures of a run, or findings of a suite.

local config = require('waza.config')
local paths = require('waza.paths')
local suites = require('waza.suites')

local M = {}

local kinds = { failed = 'E', error = 'W', timeout = 'W', needs_review = 'I' }

local function first_line(text)
  return vim.split(vim.trim(text or ''), '\n')[1]
end

local function place(suite, task)
  local known = suite.by_id and suite.by_id[suites.base(suite, task.id) or '']
  if known then
    return suites.file_of(suite, known), known.line
  end
  return task.file and paths.normal(suite.dir .. '/' .. task.file) or suite.path, 1
end

local function item(suite, task, verdict, text)
  local file, line = place(suite, task)
  return { filename = file, lnum = line, type = kinds[verdict] or 'W', text = ('%s: %s'):format(task.id, text) }
end

local function of_task(suite, task)
  local list = {}
  for _, reason in ipairs(task.reasons or {}) do
    local grader = reason.grader and reason.grader .. ': ' or ''
    local trials = reason.trials > 1 and (' (%d trials)'):format(reason.trials) or ''
    table.insert(list, item(suite, task, reason.verdict, grader .. first_line(reason.message) .. trials))
  end
  if #list == 0 then
    table.insert(list, item(suite, task, task.verdict, task.error and first_line(task.error) or task.verdict))
  end
  return list
end

-- items lists the failures in a result of run.result.
function M.items(suite, result)
  local list = {}
  for _, task in ipairs(result.tasks) do
    if kinds[task.verdict] and task.role ~= 'baseline' then
      vim.list_extend(list, of_task(suite, task))
    end
  end
  return list
end

local function set(title, items)
  vim.fn.setqflist({}, ' ', { title = title, items = items })
  if config.options.quickfix == 'open' and #items > 0 then
    local window = vim.api.nvim_get_current_win()
    vim.cmd('botright copen')
    vim.api.nvim_set_current_win(window)
  end
  vim.api.nvim_exec_autocmds('User', { pattern = 'WazaQuickfix', modeline = false })
end

-- A run without failures empties the list that this plugin created, but no other list.
local function is_ours()
  local title = vim.fn.getqflist({ title = 0 }).title or ''
  return vim.startswith(title, 'waza: ')
end

local function bad(run)
  local s = run.summary
  return not s or s.failed + s.errors + s.timeouts + (s.needsReview or 0) > 0
end

-- failures fills the list with the failures of a run that has ended.
function M.failures(suite, run)
  local title = 'waza: ' .. run.id
  if not bad(run) then
    if is_ours() then
      vim.fn.setqflist({}, ' ', { title = title, items = {} })
    end
    return
  end
  suite.daemon:request('run.result', { runId = run.id }, function(err, result)
    if not err then
      set(title, M.items(suite, result))
    end
  end)
end

-- findings fills the list with the findings of a suite.
function M.findings(suite, diagnostics)
  local letter = { error = 'E', warning = 'W' }
  set(
    'waza: ' .. suite.path,
    vim.tbl_map(function(d)
      return {
        filename = paths.normal(d.file),
        lnum = math.max(d.line or 1, 1),
        col = d.column or 0,
        type = letter[d.severity] or 'I',
        text = d.message,
      }
    end, diagnostics)
  )
end

return M
