"use client";

import * as parlor from "parlor";
import { useEffect } from "react";
import { playHere } from "../page.js";

export default function Page() {
  useEffect(() => {
    playHere(parlor);
  }, []);
  return <h1>packaging</h1>;
}
