import type { Command } from './terminal/command.ts'

/** One command in the help. Its module is loaded only when the command is called. */
export interface Leaf {
  readonly summary: string
  readonly load: () => Promise<Command>
}

/** A group of commands about one noun, such as `skein thread …`. */
export interface Group {
  readonly summary: string
  readonly verbs: Readonly<Record<string, Leaf>>
}

const dev = () => import('./commands/dev.ts')
const demo = () => import('./commands/demo.ts')
const crashtest = () => import('./commands/crashtest.ts')
const completion = () => import('./commands/completion.ts')
const serve = () => import('./commands/serve.ts')
const chat = () => import('./commands/chat.ts')
const list = () => import('./commands/thread-list.ts')
const show = () => import('./commands/thread-show.ts')
const copy = () => import('./commands/thread-copy.ts')
const edit = () => import('./commands/thread-edit.ts')
const diff = () => import('./commands/thread-diff.ts')
const tail = () => import('./commands/thread-tail.ts')
const inbox = () => import('./commands/inbox.ts')
const check = () => import('./commands/check.ts')
const replay = () => import('./commands/replay.ts')
const doctor = () => import('./commands/doctor.ts')
const api = () => import('./commands/api.ts')
const mcp = () => import('./commands/mcp.ts')
const store = () => import('./commands/store.ts')
const grant = () => import('./commands/grant.ts')
const keys = () => import('./commands/keys.ts')
const limits = () => import('./commands/limits.ts')

/** Every command, in the order of the help. */
export const COMMANDS: Readonly<Record<string, Leaf | Group>> = {
  dev: {
    summary: 'Serves agents on this machine, and reloads them when they change.',
    load: async () => (await dev()).dev,
  },
  studio: {
    summary: 'Shows calls that `inspector()` has written, or an exported thread.',
    load: async () => (await dev()).studio,
  },
  run: {
    summary: 'Sends an agent one message and prints its answer.',
    load: async () => (await chat()).run,
  },
  chat: {
    summary: 'Holds a conversation with an agent.',
    load: async () => (await chat()).chat,
  },
  demo: {
    summary: 'Kills an agent in the middle of a payment, and shows what happens. Needs no key.',
    load: async () => (await demo()).demo,
  },
  crashtest: {
    summary: 'Kills a program at every boundary, starts it again, and says what happened twice.',
    load: async () => (await crashtest()).crashtestCommand,
  },
  thread: {
    summary: 'Lists, shows and controls threads.',
    verbs: {
      list: {
        summary: 'Lists threads, the newest first.',
        load: async () => (await list()).threadList,
      },
      show: {
        summary: 'Shows one thread with its messages.',
        load: async () => (await show()).threadShow,
      },
      tail: {
        summary: 'Prints the events of a thread as they happen.',
        load: async () => (await tail()).threadTail,
      },
      export: {
        summary: 'Prints the log of a thread as JSON lines.',
        load: async () => (await copy()).threadExport,
      },
      import: {
        summary: 'Creates a thread from an exported log.',
        load: async () => (await copy()).threadImport,
      },
      stop: {
        summary: 'Stops a running thread; `resume` continues it.',
        load: async () => (await edit()).threadStop,
      },
      rename: {
        summary: 'Changes the title of a thread.',
        load: async () => (await edit()).threadRename,
      },
      delete: {
        summary: 'Removes a thread and all threads below it.',
        load: async () => (await edit()).threadDelete,
      },
      resume: {
        summary: 'Continues a thread after a stop, a failure or a limit.',
        load: async () => (await tail()).threadResume,
      },
      fork: {
        summary: 'Creates a thread with the same history.',
        load: async () => (await copy()).threadFork,
      },
      diff: {
        summary: 'Compares two threads or branches, step by step.',
        load: async () => (await diff()).threadDiff,
      },
    },
  },
  inbox: {
    summary: 'Lists everything that waits for a person.',
    load: async () => (await inbox()).inbox,
  },
  approve: {
    summary: 'Allows a tool call that waits for approval.',
    load: async () => (await inbox()).approveCommand,
  },
  deny: {
    summary: 'Refuses a tool call that waits for approval, with a reason.',
    load: async () => (await inbox()).denyCommand,
  },
  grant: {
    summary: 'Allows a tool in a thread for a time, without further approvals.',
    verbs: {
      list: {
        summary: 'Lists who has allowed which tool until when, in one thread or in all.',
        load: async () => (await grant()).grantList,
      },
      make: {
        summary: 'Allows a tool in a thread for a time.',
        load: async () => (await grant()).grantMake,
      },
      revoke: {
        summary: 'Ends a grant before its time.',
        load: async () => (await grant()).grantRevoke,
      },
    },
  },
  settle: {
    summary: 'Records whether a call that a crash cut off had its effect.',
    load: async () => (await inbox()).settleCommand,
  },
  provide: {
    summary: 'Gives a subagent the variables that it is waiting for.',
    load: async () => (await inbox()).provideCommand,
  },
  serve: {
    summary: 'Serves agents in production: checked settings, JSON logs, draining.',
    load: async () => (await serve()).serveCommand,
  },
  mcp: {
    summary: 'Serves an agent to an MCP client, over standard input and output.',
    load: async () => (await mcp()).mcp,
  },
  check: {
    summary:
      'Lists every problem with definitions, and what they would change in recorded threads.',
    load: async () => (await check()).check,
  },
  replay: {
    summary: 'Replays a recorded thread on changed definitions; no tool runs.',
    load: async () => (await replay()).replayCommand,
  },
  limits: {
    summary: 'Shows what was spent under the limits, refused and removed.',
    load: async () => (await limits()).limits,
  },
  store: {
    summary: 'Checks and copies stores.',
    verbs: {
      verify: {
        summary: 'Reads everything in the store and lists what is damaged.',
        load: async () => (await store()).storeVerify,
      },
      copy: {
        summary: 'Copies a store into an empty one, SQLite or PostgreSQL, and compares both.',
        load: async () => (await store()).copyCommand,
      },
    },
  },
  backup: {
    summary: 'Writes everything in a store into one file, while it is in use.',
    load: async () => (await store()).backupCommand,
  },
  restore: {
    summary: 'Fills an empty store from a backup.',
    load: async () => (await store()).restoreCommand,
  },
  keys: {
    summary: 'Creates the keys that sign approvals and audit logs.',
    load: async () => (await keys()).keys,
  },
  api: {
    summary: 'Sends a request to any operation of the HTTP API.',
    load: async () => (await api()).api,
  },
  completion: {
    summary: 'Prints a script that completes commands in bash, zsh or fish.',
    load: async () => (await completion()).completion,
  },
  doctor: {
    summary: 'Checks Node, packages, store, engine, clocks, server, port and API keys.',
    load: async () => (await doctor()).doctor,
  },
}

/** Whether an entry of `COMMANDS` is a group of commands. */
export function isGroup(entry: Leaf | Group): entry is Group {
  return 'verbs' in entry
}
