-- Results at the lines of tasks, in the buffers of suites.

local config = require('waza.config')
local suites = require('waza.suites')

local M = {}

local namespace = vim.api.nvim_create_namespace('waza')

local groups = {
  passed = 'WazaPassed',
  failed = 'WazaFailed',
  error = 'WazaError',
  timeout = 'WazaError',
  cancelled = 'WazaSkipped',
  skipped = 'WazaSkipped',
  needs_review = 'WazaReview',
  running = 'WazaRunning',
}

-- highlights links the groups of the plugin to common groups, unless the user has set
-- them.
function M.highlights()
  local links = {
    WazaPassed = 'DiagnosticInfo',
    WazaFailed = 'DiagnosticError',
    WazaError = 'DiagnosticWarn',
    WazaSkipped = 'Comment',
    WazaReview = 'DiagnosticHint',
    WazaRunning = 'Special',
    WazaTitle = 'Title',
    WazaQuiet = 'Comment',
    WazaTool = 'Function',
    WazaUser = 'Identifier',
    WazaAgent = 'String',
    WazaAdded = 'diffAdded',
    WazaRemoved = 'diffRemoved',
    WazaPlace = 'diffLine',
  }
  for group, link in pairs(links) do
    vim.api.nvim_set_hl(0, group, { default = true, link = link })
  end
  vim.api.nvim_set_hl(0, 'diffAdded', { default = true, link = 'DiffAdd' })
  vim.api.nvim_set_hl(0, 'diffRemoved', { default = true, link = 'DiffDelete' })
  vim.api.nvim_set_hl(0, 'diffLine', { default = true, link = 'Statement' })
end

-- group returns the highlight of a verdict or status.
function M.group(verdict)
  return groups[verdict] or 'WazaQuiet'
end

function M.icon(verdict)
  return config.options.icons[verdict] or '·'
end

-- words describes a result briefly: 7/10 passed, or 3/10 while it runs.
function M.words(result)
  if result.verdict == 'running' then
    if result.total == 0 then
      return 'running'
    end
    return ('running %d/%d'):format(result.ended, result.total)
  end
  local word = result.verdict:gsub('_', ' ')
  if result.total > 1 then
    return ('%d/%d %s'):format(result.passed, result.total, word)
  end
  return word
end

local function mark(buffer, task, result)
  local line = math.min(task.line, vim.api.nvim_buf_line_count(buffer)) - 1
  local options = { priority = 20 }
  if config.options.signs then
    options.sign_text = M.icon(result.verdict)
    options.sign_hl_group = M.group(result.verdict)
  end
  if config.options.virtual_text then
    options.virt_text = { { '  ' .. M.icon(result.verdict) .. ' ' .. M.words(result), M.group(result.verdict) } }
    options.hl_mode = 'combine'
  end
  vim.api.nvim_buf_set_extmark(buffer, namespace, math.max(line, 0), 0, options)
end

-- show draws the results of a suite in one of its buffers.
function M.show(suite, buffer)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  if not (config.options.signs or config.options.virtual_text) then
    return
  end
  for _, task in ipairs(suites.tasks_in(suite, buffer)) do
    local result = suite.last[task.id]
    if result then
      mark(buffer, task, result)
    end
  end
end

local waiting = {} -- suites to draw

local function draw_all()
  for suite in pairs(waiting) do
    waiting[suite] = nil
    for buffer in pairs(suite.buffers) do
      if vim.api.nvim_buf_is_loaded(buffer) then
        M.show(suite, buffer)
      end
    end
  end
end

-- draw draws a suite soon: many events of a run cause one drawing.
function M.draw(suite)
  if next(waiting) == nil then
    vim.defer_fn(draw_all, 30)
  end
  waiting[suite] = true
end

-- nearest returns the task whose declaration contains the cursor; in a file of one
-- task, that task. It returns nil if the cursor is above all tasks.
function M.nearest(suite, buffer, line)
  local tasks = suites.tasks_in(suite, buffer)
  if #tasks == 1 and suites.file_of(suite, tasks[1]) ~= suite.path then
    return tasks[1]
  end
  local found
  for _, task in ipairs(tasks) do
    if task.line <= line then
      found = task
    end
  end
  return found
end

-- watch updates the results in a buffer when they change.
function M.watch(suite, buffer)
  local group = vim.api.nvim_create_augroup('waza_buffer_' .. buffer, { clear = true })
  vim.api.nvim_create_autocmd('BufWritePost', {
    group = group,
    buffer = buffer,
    callback = function()
      suites.load(suite)
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufDelete', 'BufWipeout', 'BufUnload' }, {
    group = group,
    buffer = buffer,
    callback = function()
      pcall(vim.api.nvim_buf_del_var, buffer, 'waza_suite')
      suites.forget_buffer(buffer)
      vim.schedule(function()
        if not suites.attached_to(buffer) then
          pcall(vim.api.nvim_del_augroup_by_id, group)
        end
      end)
    end,
  })
end

suites.on_change(M.draw)
M.highlights()

return M
