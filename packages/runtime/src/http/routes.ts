import type { Route } from '../operations/operation.ts'
import { agentRoutes } from '../operations/agents.ts'
import { approvalRoutes } from '../operations/approvals.ts'
import { chatRoutes } from './chat/chat-operations.ts'
import { compatRoutes } from './compat/compat-operations.ts'
import { controlRoutes } from '../operations/control.ts'
import { effectRoutes } from '../operations/effects.ts'
import { endpointRoutes } from './endpoints.ts'
import { envRoutes } from '../operations/env.ts'
import { eventRoutes } from './stream/stream-operations.ts'
import { fileRoutes } from '../operations/files.ts'
import { logRoutes, threadRoutes, transferRoutes } from '../operations/threads.ts'
import { messageRoutes } from '../operations/messages.ts'
import { serverRoutes } from './server-operations.ts'
import { valueRoutes } from '../operations/values.ts'
import { variableRoutes } from '../operations/variables.ts'

/** Every route there is. The server, the OpenAPI document and the tests of tenancy are made from this list. */
export const ROUTES: readonly Route[] = [
  ...serverRoutes,
  ...agentRoutes,
  ...threadRoutes,
  ...messageRoutes,
  ...controlRoutes,
  ...eventRoutes,
  ...transferRoutes,
  ...fileRoutes,
  ...valueRoutes,
  ...envRoutes,
  ...variableRoutes,
  ...approvalRoutes,
  ...effectRoutes,
  ...logRoutes,
  ...endpointRoutes,
  ...chatRoutes,
  ...compatRoutes,
]
