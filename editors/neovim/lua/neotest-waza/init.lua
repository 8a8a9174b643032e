-- An adapter for neotest: suites are files, tasks are tests.
--
--   require('neotest').setup({ adapters = { require('neotest-waza') } })
--
-- Calling it sets options: require('neotest-waza')({ path = …, env = …, args_of_run = {
-- '--workers', '4' } }).

local paths = require('waza.paths')

local options = { args_of_run = {} }

local function program()
  return options.path or require('waza.config').options.path
end

-- jobstart() would treat an empty table as a list, which it does not accept.
local function environment()
  local env = options.env or require('waza.config').options.env
  return next(env) and env or nil
end

local M = { name = 'waza' }

-- root returns the repository of a directory, if it has suites.
function M.root(dir)
  local from = paths.normal(dir)
  return paths.root(from .. '/.')
end

-- filter_dir excludes directories without suites, which can be very large.
function M.filter_dir(name)
  return name ~= 'node_modules' and name ~= '.git' and name ~= 'vendor'
end

function M.is_test_file(path)
  return paths.is_suite(path)
end

local function lines_of(path)
  local file = io.open(path)
  if not file then
    return 0
  end
  local n = 0
  for _ in file:lines() do
    n = n + 1
  end
  file:close()
  return n
end

local function id_of(path, task)
  return path .. '::' .. task
end

-- positions lists the file and its tests in the form of trees. A task in its own file
-- has no lines in the suite's.
local function positions(path, tasks)
  local last = math.max(lines_of(path) - 1, 0)
  local list =
    { { type = 'file', id = path, name = vim.fn.fnamemodify(path, ':t'), path = path, range = { 0, 0, last, 0 } } }
  local here = paths.normal(path)
  for i, task in ipairs(tasks) do
    local range = { 0, 0, 0, 0 }
    if paths.normal(paths.dir(path) .. '/' .. task.file) == here then
      local follows = tasks[i + 1]
      local ends = follows and follows.line > task.line and follows.line - 2 or last
      range = { task.line - 1, 0, math.max(ends, task.line - 1), 0 }
    end
    table.insert(list, { { type = 'test', id = id_of(path, task.id), name = task.id, path = path, range = range } })
  end
  return list
end

-- discover_positions requests the tasks of a suite from waza; nil if the suite is
-- invalid.
function M.discover_positions(path)
  local code, out = require('neotest.lib').process.run({ program(), 'tasks', path, '--json' }, { stdout = true })
  if code ~= 0 then
    return nil
  end
  local ok, answer = pcall(vim.json.decode, out.stdout)
  if not ok then
    return nil
  end
  return require('neotest.types').Tree.from_list(positions(path, answer.tasks), function(position)
    return position.id
  end)
end

-- build_spec runs a suite, or one task of it. For a directory, neotest runs each file.
function M.build_spec(args)
  local position = args.tree:data()
  if position.type == 'dir' then
    return nil
  end
  local results = vim.fn.tempname()
  local command = { program(), 'run', position.path, '--output', results }
  if position.type == 'test' then
    vim.list_extend(command, { '--task', position.name })
  end
  vim.list_extend(command, options.args_of_run)
  vim.list_extend(command, args.extra_args or {})
  return {
    command = command,
    cwd = paths.dir(position.path),
    env = environment(),
    context = { results = results, path = position.path },
  }
end

local function read(path)
  local file = io.open(path)
  if not file then
    return nil
  end
  local ok, result = pcall(vim.json.decode, file:read('*l') or '', { luanil = { object = true } })
  file:close()
  os.remove(path)
  return ok and result or nil
end

local status_of = { passed = 'passed', skipped = 'skipped', cancelled = 'skipped' }
local graver = { failed = 3, passed = 2, skipped = 1 }

local function errors_of(task, line)
  local errors = {}
  for _, reason in ipairs(task.reasons or {}) do
    local grader = reason.grader and reason.grader .. ': ' or ''
    table.insert(errors, { message = grader .. reason.message, line = line })
  end
  if #errors == 0 and task.error then
    table.insert(errors, { message = task.error, line = line })
  end
  return errors
end

-- add merges the results of a task in several cells of a matrix: the worst one counts.
local function add(found, id, task, line, output)
  local status = status_of[task.verdict] or 'failed'
  local c = task.counts
  local short = c and ('%d/%d trials passed'):format(c.passed, c.total) or task.verdict
  local before = found[id]
  local new = { status = status, output = output, short = short, errors = errors_of(task, line) }
  if before then
    new.errors = vim.list_extend(before.errors, new.errors)
    new.status = graver[before.status] > graver[status] and before.status or status
    new.short = before.short .. ', ' .. short
  end
  found[id] = new
end

local function ranges(tree)
  local lines = {}
  for _, position in tree:iter() do
    lines[position.id] = position.range and position.range[1]
  end
  return lines
end

-- results returns the results of tasks. Without results, the suite could not run: the
-- file failed, and its output contains the reason.
function M.results(spec, result, tree)
  local recorded = read(spec.context.results)
  if not recorded then
    local message = ('waza run ended with code %d'):format(result.code)
    return { [tree:data().id] = { status = 'failed', output = result.output, errors = { { message = message } } } }
  end
  local lines, found = ranges(tree), {}
  for _, task in ipairs(recorded.tasks) do
    if not task.role and task.verdict and task.verdict ~= '' then
      local id = id_of(spec.context.path, task.task or task.id)
      add(found, id, task, lines[id], result.output)
    end
  end
  return found
end

return setmetatable(M, {
  __call = function(_, given)
    options = vim.tbl_extend('force', { args_of_run = {} }, given or {})
    return M
  end,
})
