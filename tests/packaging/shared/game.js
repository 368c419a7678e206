import * as parlor from "parlor";
import { playHere } from "./page.js";

playHere(parlor);
