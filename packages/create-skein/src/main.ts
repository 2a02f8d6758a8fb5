import { parseArgs } from 'node:util'
import {
  CreateError,
  createProject,
  folderProblem,
  shown,
  TEMPLATES,
  type TemplateName,
} from './templates.ts'

const NAMES = Object.keys(TEMPLATES) as TemplateName[]
const DEFAULT_FOLDER = 'skein-app'
const DEFAULT_TEMPLATE = 'chat'

const HELP = `Creates a project with an agent and a test that work without a key.

Usage: npm create skein@latest [folder] -- [--template <name>] [--yes]

  --template <name>  ${NAMES.map((name) => `${name.padEnd(10)} ${TEMPLATES[name].about}`).join(`\n${' '.repeat(21)}`)}
  --yes              Asks nothing: the folder is ${DEFAULT_FOLDER}, the template ${DEFAULT_TEMPLATE}, unless they are named.
  --help             Shows this.

npm create skein@latest my-app -- --template chat
npm create skein@latest my-library -- --template library --yes
`

/** Runs `npm create skein` with these words, and sets the exit code. */
export async function createSkein(args: readonly string[]): Promise<void> {
  try {
    const { values, operands } = readWords(args)
    if (values.help) return void process.stdout.write(HELP)
    const project = await choose(operands[0], values)
    if (project === undefined) {
      process.exitCode = 130
      return
    }
    checkNode(project.template)
    createProject(project.template, project.folder)
    process.stdout.write(nextSteps(project.template, project.folder))
  } catch (error) {
    if (!(error instanceof CreateError)) throw error
    // As the command `skein` does.
    const code = error.code === 'USAGE' ? '' : ` [${error.code}]`
    process.stderr.write(`error: ${error.message}${code}\n${error.hint}\n`)
    process.exitCode = error.exitCode
  }
}

interface Words {
  readonly values: { readonly template?: string; readonly yes?: boolean; readonly help?: boolean }
  readonly operands: readonly string[]
}

function readWords(args: readonly string[]): Words {
  let words: Words
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        template: { type: 'string', short: 't' },
        yes: { type: 'boolean', short: 'y' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    words = { values, operands: positionals }
  } catch (error) {
    // The first sentence of Node's message names the wrong word.
    const [message = ''] = (error as Error).message.split(/\. (?=[A-Z])/)
    throw usage(`${message.replace(/\.$/, '')}.`)
  }
  if (words.operands.length > 1) throw usage(`Give one folder, not ${words.operands.join(' ')}.`)
  return words
}

function usage(message: string): CreateError {
  return new CreateError(message, {
    code: 'USAGE',
    hint: 'npm create skein@latest [folder] -- [--template <name>] [--yes]',
  })
}

interface Project {
  readonly folder: string
  readonly template: TemplateName
}

/**
 * Returns what the words on the command line say, and asks for the rest at a terminal. Undefined if the person cancels.
 * npm keeps flags before `--` to itself but passes them on in its environment, so `--template` works there too.
 */
async function choose(
  folder: string | undefined,
  { template = process.env['npm_config_template'], yes }: Words['values'],
): Promise<Project | undefined> {
  const named = template === undefined ? undefined : templateOf(template)
  const problem = folder === undefined ? undefined : folderProblem(folder)
  if (problem !== undefined)
    throw new CreateError(problem, {
      code: 'FOLDER_NOT_EMPTY',
      hint: 'Name a folder that does not exist yet; nothing was written.',
    })
  if (folder !== undefined && named !== undefined) return { folder, template: named }
  if (yes) return { folder: folder ?? DEFAULT_FOLDER, template: named ?? DEFAULT_TEMPLATE }
  if (process.stdin.isTTY && process.stdout.isTTY) return ask(folder, named)
  const missing = folder === undefined ? 'The folder is missing' : '--template is missing'
  throw usage(
    `${missing}, and there is no terminal to ask; name it, or accept the defaults with --yes.`,
  )
}

function templateOf(name: string): TemplateName {
  const found = NAMES.find((one) => one === name)
  if (found !== undefined) return found
  throw new CreateError(`There is no template "${name}".`, {
    code: 'TEMPLATE_NOT_FOUND',
    hint: `--template takes ${NAMES.join(', ')}.`,
  })
}

async function ask(
  folder: string | undefined,
  template: TemplateName | undefined,
): Promise<Project | undefined> {
  const { cancel, intro, isCancel, select, text } = await import('@clack/prompts')
  intro('npm create skein')
  const where =
    folder ??
    (await text({
      message: 'In which folder?',
      placeholder: DEFAULT_FOLDER,
      defaultValue: DEFAULT_FOLDER,
      validate: (value) => folderProblem(value || DEFAULT_FOLDER),
    }))
  if (isCancel(where)) return void cancel('Nothing was created.')
  const what =
    template ??
    (await select({
      message: 'Which template?',
      options: NAMES.map((value) => ({
        value,
        label: TEMPLATES[value].title,
        hint: TEMPLATES[value].about,
      })),
    }))
  if (isCancel(what)) return void cancel('Nothing was created.')
  process.stdout.write('\n')
  return { folder: where, template: what }
}

function checkNode(name: TemplateName): void {
  const [major, minor] = TEMPLATES[name].node
  const [ownMajor = 0, ownMinor = 0] = process.versions.node.split('.').map(Number)
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return
  throw new CreateError(
    `The template ${name} needs Node ${major} or newer; this is Node ${process.versions.node}.`,
    {
      code: 'NODE_TOO_OLD',
      hint: 'Install it from https://nodejs.org, or take --template library, which runs on Node 22.18.',
      exitCode: 1,
    },
  )
}

/** The last lines of the output: what was created, the two commands that come next, and that no key is needed. */
function nextSteps(name: TemplateName, folder: string): string {
  const { about, script } = TEMPLATES[name]
  // The variable `npm_config_user_agent` names the package manager that was used: npm, pnpm, yarn or bun.
  const manager =
    /^(pnpm|yarn|bun)\//.exec(process.env['npm_config_user_agent'] ?? '')?.[1] ?? 'npm'
  const path = shown(folder)
  const enter =
    path === '.' ? '' : `cd ${/^[\w./\\-]+$/.test(path) ? path : JSON.stringify(path)} && `
  const run = script === 'start' ? `${manager} start` : `${manager} run ${script}`
  return `Created ${path}: ${about}.

  ${enter}${manager} install
  ${run}

No key is needed: a scripted model answers until .env has a key.
`
}
