import { host, join } from "parlor";
import { main } from "./main.js";

await main({ host, join });
