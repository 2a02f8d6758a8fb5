import type { Command } from './command.ts'

/** A command by its name; what it does is loaded when it is called. */
export interface Leaf {
  readonly summary: string
  readonly load: () => Promise<{ readonly default: Command }>
}

/** Commands about one noun. */
export interface Group {
  readonly summary: string
  readonly verbs: Readonly<Record<string, Leaf>>
}

/** Everything there is, in the order of help. */
export const COMMANDS: Readonly<Record<string, Leaf | Group>> = {
  dev: {
    summary: 'Serves agents on this machine, and reloads them when they change.',
    load: () => import('./commands/dev.ts'),
  },
  run: {
    summary: 'Gives an agent one message and prints its answer.',
    load: () => import('./commands/run.ts'),
  },
  chat: {
    summary: 'Talks to an agent.',
    load: () => import('./commands/chat.ts'),
  },
  thread: {
    summary: 'Lists, shows and steers threads.',
    verbs: {
      list: {
        summary: 'Threads, the newest first.',
        load: () => import('./commands/thread-list.ts'),
      },
      show: {
        summary: 'One thread with its messages.',
        load: () => import('./commands/thread-show.ts'),
      },
      tail: {
        summary: 'Events of a thread as they happen.',
        load: () => import('./commands/thread-tail.ts'),
      },
      export: {
        summary: 'The log of a thread as JSON lines.',
        load: () => import('./commands/thread-export.ts'),
      },
      import: {
        summary: 'A new thread from an exported log.',
        load: () => import('./commands/thread-import.ts'),
      },
      stop: { summary: 'Parks what runs.', load: () => import('./commands/thread-stop.ts') },
      resume: {
        summary: 'Goes on after a stop, a failure or a limit.',
        load: () => import('./commands/thread-resume.ts'),
      },
      fork: {
        summary: 'A new thread with the same history.',
        load: () => import('./commands/thread-fork.ts'),
      },
    },
  },
  inbox: {
    summary: 'Lists what waits for a person.',
    load: () => import('./commands/inbox.ts'),
  },
  approve: {
    summary: 'Allows a call that waits.',
    load: () => import('./commands/approve.ts'),
  },
  deny: {
    summary: 'Refuses a call that waits, with a reason.',
    load: () => import('./commands/deny.ts'),
  },
  check: {
    summary: 'Lists all problems of definitions.',
    load: () => import('./commands/check.ts'),
  },
  doctor: {
    summary: 'Looks at Node, the store, the port and the keys.',
    load: () => import('./commands/doctor.ts'),
  },
}

export function isGroup(entry: Leaf | Group): entry is Group {
  return 'verbs' in entry
}
