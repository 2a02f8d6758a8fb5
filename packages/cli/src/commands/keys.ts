import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type JsonObject, messageOf } from '@skein/base'
import { type Command, CommandError, defineCommand, ExitCode } from '../terminal/command.ts'

/** `skein keys` */
export const keys: Command = defineCommand({
  operands: [{ name: 'file', description: 'File to create, outside of the folder of the store.' }],
  options: {},
  examples: ['skein keys /etc/skein/governance.json', 'skein keys ./secrets/governance.json'],
  async run({ operands: [file = ''], output }) {
    const { openGovernanceKeys } = await import('@skein/runtime')
    let key: JsonObject = {}
    await openGovernanceKeys({
      store: {
        setting: async () => undefined,
        setSetting: async (_, value) => void (key = value),
      },
    })
    const path = resolve(file)
    try {
      writeFileSync(path, `${JSON.stringify(key)}\n`, { flag: 'wx', mode: 0o600 })
    } catch (cause) {
      throw new CommandError(`${path} cannot be created: ${messageOf(cause)}.`, {
        code: 'FILE_UNWRITABLE',
        hint: 'Name a file that does not exist, in a folder that exists.',
        cause,
      })
    }
    output.line(`${path}: keys that sign approvals and audit logs. Keep a copy elsewhere.`)
    output.say(`Set governanceKeys, or SKEIN_GOVERNANCE_KEYS=${path}.`)
    output.say(`A new key of stored secrets, for SKEIN_SECRET_KEY: openssl rand -base64 32`)
    return ExitCode.Done
  },
})
