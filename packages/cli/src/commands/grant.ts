import { withConnection } from '../connect/connect.ts'
import { findThreadByPrefix } from '../connect/short-ids.ts'
import { timeOf } from '../follow/show-run.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
  THREAD_OPERAND,
  usageError,
} from '../terminal/command.ts'
import { lineText, textTable } from '../terminal/table.ts'

/** `skein grant list` */
export const grantList: Command = defineCommand({
  operands: [{ ...THREAD_OPERAND, isOptional: true }],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein grant list', "skein grant list 7f3a --json | jq '.grants[0]'"],
  async run({ values, operands: [text], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { grants: api } = client.threads
      const one = text === undefined ? undefined : await findThreadByPrefix(client, text)
      const grants = one ? await api.list(one.id) : await api.all()
      if (values.json) output.json({ grants })
      else if (grants.length === 0)
        output.say(`No one has allowed a tool in ${one ? 'this thread' : 'any thread'}.`)
      if (values.json) return ExitCode.Done
      const rows = grants.map((grant) => [
        ...('threadId' in grant ? [String(grant.threadId)] : []),
        grant.grantId,
        grant.tool,
        grant.status,
        grant.revoked
          ? `by ${grant.by}, revoked by ${grant.revoked.by}`
          : `by ${grant.by} until ${grant.expiresAt}`,
        grant.reason ?? '',
      ])
      for (const line of textTable(rows)) output.line(line.trimEnd())
      return ExitCode.Done
    })
  },
})

/** `skein grant make` */
export const grantMake: Command = defineCommand({
  operands: [THREAD_OPERAND, { name: 'tool', description: 'Name of the tool to allow.' }],
  options: {
    for: { type: 'string', value: 'time', description: 'How long, e.g. 30m, 8h. Required.' },
    reason: { type: 'string', value: 'text', description: 'Recorded with the grant.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: [
    'skein grant make 7f3a refund --for 1h',
    'skein grant make 7f3a refund --for 8h --reason "Recall of the lamps" --json',
  ],
  async run({ values, operands: [text = '', tool = ''], output }) {
    const forMs = timeOf('for', values.for)
    if (forMs === undefined)
      throw usageError('A grant needs an end.', 'Give it with --for, e.g. --for 1h.')
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      const { reason } = values
      const grant = await client.threads.grants.make(id, { tool, forMs, reason })
      if (values.json) output.json(grant)
      else output.line(grant.grantId)
      output.say(`${lineText(tool)} needs no approval in thread ${id} until ${grant.expiresAt}.`)
      return ExitCode.Done
    })
  },
})

/** `skein grant revoke` */
export const grantRevoke: Command = defineCommand({
  operands: [
    THREAD_OPERAND,
    { name: 'grant', description: 'Id of the grant, or enough of its beginning or end.' },
  ],
  options: SERVER_OPTIONS,
  examples: ['skein grant revoke 7f3a 91c2', 'skein grant revoke 7f3a 91c2 --url http://host:4111'],
  async run({ values, operands: [text = '', wanted = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      const matches = (await client.threads.grants.list(id)).filter(
        ({ grantId }) => grantId.startsWith(wanted) || grantId.endsWith(wanted),
      )
      const [grant] = matches
      if (!grant || matches.length > 1)
        throw new CommandError(`${matches.length} grants of thread ${id} match ${wanted}.`, {
          code: 'GRANT_NOT_FOUND',
          hint: `\`skein grant list ${id}\` lists them.`,
        })
      await client.threads.grants.revoke(id, grant.grantId)
      output.say(`${lineText(grant.tool)} needs an approval again in thread ${id}.`)
      return ExitCode.Done
    })
  },
})
