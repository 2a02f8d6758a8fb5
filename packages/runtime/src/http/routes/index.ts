import type { Route } from '../route.ts'
import { agentRoutes } from './agents.ts'
import { approvalRoutes } from './approvals.ts'
import { chatRoutes } from './chat.ts'
import { compatRoutes } from './compat.ts'
import { controlRoutes } from './control.ts'
import { effectRoutes } from './effects.ts'
import { endpointRoutes } from './endpoints.ts'
import { envRoutes } from './env.ts'
import { eventRoutes } from './events.ts'
import { fileRoutes } from './files.ts'
import { logRoutes } from './logs.ts'
import { messageRoutes } from './messages.ts'
import { serverRoutes } from './server.ts'
import { threadRoutes } from './threads.ts'
import { transferRoutes } from './transfer.ts'
import { valueRoutes } from './values.ts'
import { variableRoutes } from './variables.ts'

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
